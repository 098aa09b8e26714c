/// state_names builds the names of state tensors: the kind, then the name in the module.
/// Checkpoints, the transfer of state, and the state of the reference use them.
///
/// optimizer_registry.h has the optimizers' kinds (`state_names`), each followed by a colon here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace stagecraft {

inline constexpr std::string_view kWeight = "weight:";
inline constexpr std::string_view kBuffer = "buffer:";
inline constexpr std::string_view kMaster = "master:";    // of a weight, in float32
inline constexpr std::string_view kAverage = "average:";  // of a weight over updates

/// Returns "weight:NAME" for kWeight.
[[nodiscard]] inline std::string state_name(std::string_view kind, std::string_view name) {
  return std::string(kind).append(name);
}

/// Returns whether it is the name of an optimizer's state, to which masters and averages belong.
[[nodiscard]] inline bool is_of_optimizer(std::string_view name) {
  return !name.starts_with(kWeight) && !name.starts_with(kBuffer);
}

/// StateShare is a part of a state tensor that a rank has: the elements [begin, end) of the whole
/// tensor, in one dimension.
struct StateShare {
  std::string name;  ///< of the whole tensor
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Returns the name of a share: "exp_avg:fc.weight [1024, 4096)".
[[nodiscard]] std::string share_name(std::string_view name, std::int64_t begin, std::int64_t end);

/// Returns the share of this name; nothing for any other name.
[[nodiscard]] std::optional<StateShare> share_named(std::string_view name);

/// Returns the tensor of this name, or the share of it. Requires: `whole` has the whole tensor.
[[nodiscard]] at::Tensor tensor_or_share(const std::map<std::string, at::Tensor>& whole,
                                         const std::string& name);

}  // namespace stagecraft
