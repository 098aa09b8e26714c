/// state_json writes the state of a watched run as one JSON object. docs/json.md has its fields.
#pragma once

#include <string>

#include "stagecraft/actors/watch/watched_state.h"

namespace stagecraft {

[[nodiscard]] std::string state_json(const WatchedState& state);

}  // namespace stagecraft
