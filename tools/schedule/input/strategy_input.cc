#include "stagecraft/tools/schedule/input/strategy_input.h"

#include <set>
#include <variant>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/strategy/strategy_file.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {

Strategy read_strategy(const std::string& path, const std::string& what, Console& console) {
  return strategy_in(read_source(path, what, console), path);
}

Strategy strategy_in(const std::string& text, const std::string& path) {
  try {
    return parse_strategy_file(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source_name(path), error.message()));
  }
}

int ranks_of(const Strategy& strategy) {
  std::set<Rank> ranks;
  for (const Directive& directive : strategy.directives()) {
    if (const auto* const place = std::get_if<PlaceDirective>(&directive)) {
      ranks.insert(place->ranks.begin(), place->ranks.end());
    }
  }
  return static_cast<int>(ranks.size());
}

}  // namespace stagecraft::tools
