/// state_names builds the names of state tensors: the kind, then the name in the module.
/// Checkpoints, the transfer of state, and the state of the reference use them.
///
/// optimizer_registry.h has the optimizers' kinds (`state_names`), each followed by a colon here.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

inline constexpr std::string_view kWeight = "weight:";
inline constexpr std::string_view kBuffer = "buffer:";

/// Returns "weight:NAME" for kWeight.
[[nodiscard]] inline std::string state_name(std::string_view kind, std::string_view name) {
  return std::string(kind).append(name);
}

}  // namespace stagecraft
