/// measure_links measures transfers and sums between two ranks of this host, on the transport that
/// they will use. profile() uses it.
///
/// Two threads send a tensor there and back; half of that time is a transfer. Ranks that are
/// threads hand it over. Ranks of several processes send it through the data port, encrypted, over
/// the loopback device; here both ports belong to this process, so only the two processes' ends are
/// missing.
/// Source of the sizes: Pfeife's benchmark, float32 tensors b x w x h of b in {1, 2, 4} and w, h in
/// {100, 400, 800, 3200}, each size once, up to kLargestTransfer.
///
/// A sum is an all_reduce of both ranks: each sends its half of the buffer, adds, and sends the sum
/// back. So the time of each half contains an addition, and all_reduce_seconds (work_graph.h)
/// multiplies it by the number of parts.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft {

/// RankHomes says where ranks will run.
enum class RankHomes { Threads, Processes };

struct TransferTime {
  double bytes = 0;
  double seconds = 0;  ///< a median
};

/// The largest transfer. Larger sizes of the benchmark add seconds and no information.
inline constexpr double kLargestTransfer = 64e6;

/// Measures the transfers. Errors: those of DataPort::open.
/// Cost: about a second.
[[nodiscard]] std::vector<TransferTime> measure_transfers(RankHomes homes);

/// Measures sums; each entry is a half of one. Errors and cost: as above.
[[nodiscard]] std::vector<TransferTime> measure_sums(RankHomes homes);

/// Returns the line latency + bytes / bandwidth that fits best by least squares of relative errors,
/// so that small transfers count as much as large ones. If time does not grow with bytes, or grows
/// less than the memory of any host needs to copy them, the bandwidth is infinite: threads hand
/// over a pointer.
/// Requires: at least one transfer, and a time above 0 for each.
[[nodiscard]] Link fit_link(std::span<const TransferTime> transfers);

/// Returns the usual link and that of sums.
[[nodiscard]] LinkCosts measure_links(RankHomes homes);

}  // namespace stagecraft
