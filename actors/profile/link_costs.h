/// measure_link: what a transfer between two ranks of this host takes, on the transport that they
/// will use. Used by profile().
///
/// Two threads send a tensor there and back; half of that is a transfer. Ranks that are threads
/// hand it over; ranks of several processes send it through the data port, encrypted, over the
/// loopback device. Of two processes only the ends are missing: both ports are of this one.
/// Source of the sizes: Pfeife's benchmark, float32 tensors b x w x h of b in {1, 2, 4} and w, h in
/// {100, 400, 800, 3200}, each size once, up to kLargestTransfer.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "stagecraft/scheduler/costs.h"

namespace stagecraft {

/// Where ranks will be.
enum class RankHomes { Threads, Processes };

struct TransferTime {
  double bytes = 0;
  double seconds = 0;  ///< the median of some
};

/// Larger ones of the benchmark add seconds and tell nothing new.
inline constexpr double kLargestTransfer = 64e6;

/// Errors: those of DataPort::open.
/// Cost: about a second.
[[nodiscard]] std::vector<TransferTime> measure_transfers(RankHomes homes);

/// The line latency + bytes / bandwidth that is nearest by least squares of relative errors, so
/// that small transfers count as much as large ones. Where time does not grow with bytes, the
/// bandwidth is infinite.
/// Requires: a transfer, and none without time.
[[nodiscard]] Link fit_link(std::span<const TransferTime> transfers);

[[nodiscard]] inline Link measure_link(RankHomes homes) {
  return fit_link(measure_transfers(homes));
}

}  // namespace stagecraft
