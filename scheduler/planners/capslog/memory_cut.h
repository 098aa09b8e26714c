/// memory_cut: a chain of layers over devices so that the fullest device holds as little as it can.
///
///     alone 5 3 8 2 7 4, added - 2 6 1 5 3   on 3 devices:   0 1 | 2 3 | 4 5   hold 7, 9 and 10
///
/// The smallest threshold is found by bisection. Both its ends are always bytes that some stage
/// holds: what was reached, and the least that stood in the way; so it ends without the sorted list
/// of all stages' bytes, with few probes. A probe is fill_first.h; where that may miss a cut
/// (filling_is_exact()) sweep.h goes on from what it has found. Then the fullest device stays as it
/// is, and the layers on either side of it are cut anew, and so on. Pure; any thread.
/// MC-1: no other cut into as many stages has a smaller peak, unless filling is not exact and
///       there are more than kMaxSweptLayers layers.
/// Source: CAPSlog, algorithm 1, whose bisection alone is not optimal for every memory.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/capslog/layer_memory.h"
#include "stagecraft/scheduler/planners/capslog/operator_memory.h"

namespace stagecraft {

/// A sweep takes the square of the layers; of so many, about a second.
inline constexpr int kMaxSweptLayers = 3'000;

struct MemoryCut {
  std::vector<int> ends;      ///< by device: one beyond its last layer
  std::vector<double> bytes;  ///< by device

  [[nodiscard]] double peak() const;
  [[nodiscard]] std::vector<int> sizes() const;

  friend bool operator==(const MemoryCut&, const MemoryCut&) = default;
};

/// Keeps MC-1. Errors: UsageArgument for fewer layers than devices, or no device.
/// Cost: some 10 to 30 probes of the layers for the peak, and for each device those at its side.
[[nodiscard]] MemoryCut memory_cut(const LayerMemory& memory, int devices);
/// Requires: `memory` knows as many places.
[[nodiscard]] MemoryCut memory_cut(const OperatorMemory& memory, int devices);

/// The cut that the bisection over fill_first() ends with, before anything is done for the devices
/// beside the fullest, and without a sweep: the published recommendation.
/// Errors: as memory_cut().
[[nodiscard]] MemoryCut fill_first_cut(const LayerMemory& memory, int devices);

/// Returns PlanInfeasible where a device of the cut holds more than `capacity`, with the fullest
/// and the bytes it lacks; else nothing.
[[nodiscard]] std::optional<Error> lack_of_memory(const MemoryCut& cut, double capacity);

}  // namespace stagecraft
