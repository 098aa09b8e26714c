#include "stagecraft/scheduler/strategy/strategy_file.h"

#include "stagecraft/scheduler/strategy/piper_strategy.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"

namespace stagecraft {

bool looks_like_strategy_file(std::string_view text) {
  return looks_like_strategy(text) || looks_like_piper_strategy(text);
}

Strategy parse_strategy_file(std::string_view text) {
  return looks_like_piper_strategy(text) ? parse_piper_strategy(text) : parse_strategy(text);
}

}  // namespace stagecraft
