/// planners_capslog measures the time of CAPSlog's cut, on layers like those of the published
/// measurement.
#pragma once

namespace stagecraft::bench {

/// The published time for `kCapslogLayers` layers on `kCapslogDevices` devices.
inline constexpr double kPublishedCapslogSeconds = 1.7e-3;
inline constexpr int kCapslogLayers = 48;  // 47 places to cut
inline constexpr int kCapslogDevices = 24;

/// Returns the median seconds of a memory_cut() of that size, over models of random layers.
[[nodiscard]] double capslog_seconds();

}  // namespace stagecraft::bench
