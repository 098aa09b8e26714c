/// noise_warning: whether costs were measured on a machine that was too busy to trust them.
///
/// Used by profile(), which measures such a size again and does not keep it, and by those who plan
/// with the costs. Pure; any thread.
#pragma once

#include <optional>
#include <string>

namespace stagecraft {

/// The largest noise (CostDevice::noise) that a plan may be made with unawares.
inline constexpr double kMostNoise = 0.2;

/// Returns a sentence with the noise, the limit and what to do; nothing up to the limit.
[[nodiscard]] std::optional<std::string> noise_warning(double noise, double most = kMostNoise);

}  // namespace stagecraft
