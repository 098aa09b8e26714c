/// clip_scale returns the factor that scales down the gradient of a step.
#pragma once

#include <algorithm>

namespace stagecraft {

/// Returns the factor that reduces a gradient of norm `norm` to `clip`, or 1 if there is nothing to
/// clip. An infinite `clip` clips nothing.
[[nodiscard]] inline double clip_scale(double clip, double norm) {
  constexpr double kGuard = 1e-6;  // against division by zero, as in PyTorch
  return std::min(1.0, clip / (norm + kGuard));
}

}  // namespace stagecraft
