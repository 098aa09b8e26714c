/// noise_warning checks whether the machine was too busy during a measurement to trust the costs.
///
/// profile() uses it to repeat the measurement of a size, and to discard the size if that does not
/// help. Planners of a step use it before they use the costs. Pure; any thread may call it.
#pragma once

#include <optional>
#include <string>

namespace stagecraft {

/// The largest noise (CostDevice::noise) for which a plan is made without a warning.
inline constexpr double kMostNoise = 0.2;

/// Returns a sentence with the noise, the limit and the advice; nothing up to the limit.
[[nodiscard]] std::optional<std::string> noise_warning(double noise, double most = kMostNoise);

}  // namespace stagecraft
