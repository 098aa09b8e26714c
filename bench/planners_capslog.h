/// How long CAPSlog's cut takes, on layers as the published measurement had them.
#pragma once

namespace stagecraft::bench {

/// The published time for `kCapslogLayers` layers on `kCapslogDevices` devices.
inline constexpr double kPublishedCapslogSeconds = 1.7e-3;
inline constexpr int kCapslogLayers = 48;  // 47 places to cut
inline constexpr int kCapslogDevices = 24;

/// Median seconds of a memory_cut() of that size, over models of random layers.
[[nodiscard]] double capslog_seconds();

}  // namespace stagecraft::bench
