/// clip has the numbers by which the gradient of a step is limited.
#pragma once

#include <algorithm>
#include <optional>

namespace stagecraft {

/// Returns the factor that reduces a gradient of norm `norm` to `clip`, or 1 if there is nothing to
/// clip. An infinite `clip` clips nothing.
[[nodiscard]] inline double clip_scale(double clip, double norm) {
  constexpr double kGuard = 1e-6;  // against division by zero, as in PyTorch
  return std::min(1.0, clip / (norm + kGuard));
}

/// Returns the largest size of an element of the gradient after clipping.
[[nodiscard]] inline double largest_applied(double clip, const std::optional<double>& clip_value) {
  return std::min(clip, clip_value.value_or(clip));
}

}  // namespace stagecraft
