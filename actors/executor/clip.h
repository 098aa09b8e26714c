/// clip_scale: how far the gradient of a step is scaled down.
#pragma once

#include <algorithm>
#include <optional>

namespace stagecraft {

/// The factor that brings a gradient of norm `norm` down to `clip`; 1 where there is nothing to
/// clip.
[[nodiscard]] inline double clip_scale(const std::optional<double>& clip, double norm) {
  constexpr double kGuard = 1e-6;  // against division by zero, as is customary
  return clip ? std::min(1.0, *clip / (norm + kGuard)) : 1.0;
}

}  // namespace stagecraft
