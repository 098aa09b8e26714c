/// strategy_file reads strategies of both forms: text (strategy_text.h), and Piper's directives
/// (piper_strategy.h). The commands read all files of strategies with it.
#pragma once

#include <string_view>

#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

/// Returns whether the text looks like a strategy of either form.
[[nodiscard]] bool looks_like_strategy_file(std::string_view text);

/// Reads the form that the text looks like. Errors: those of parse_strategy() and
/// parse_piper_strategy().
[[nodiscard]] Strategy parse_strategy_file(std::string_view text);

}  // namespace stagecraft
