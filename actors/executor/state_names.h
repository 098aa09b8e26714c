/// What a state tensor is called: its kind, then the name the module gives it. In checkpoints, in
/// the transfer of state, and in what the reference says of itself.
///
/// The optimizer's kinds stand in optimizer_registry.h (`state_names`), each followed by a colon.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

inline constexpr std::string_view kWeight = "weight:";
inline constexpr std::string_view kBuffer = "buffer:";

/// "weight:NAME" for kWeight.
[[nodiscard]] inline std::string state_name(std::string_view kind, std::string_view name) {
  return std::string(kind).append(name);
}

}  // namespace stagecraft
