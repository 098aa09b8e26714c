/// state_json writes the state of a watched run as one JSON object. docs/json.md has its fields.
#pragma once

#include <cstdint>
#include <string>

#include "stagecraft/actors/watch/watched_state.h"

namespace stagecraft {

enum class StateParts : std::uint8_t { All, WithoutTimeline };

[[nodiscard]] std::string state_json(const WatchedState& state, StateParts parts = StateParts::All);

}  // namespace stagecraft
