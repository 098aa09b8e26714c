/// memory_cut cuts a chain of layers over devices so that the fullest device holds as little as
/// possible.
///
///     alone 5 3 8 2 7 4, added - 2 6 1 5 3   on 3 devices:   0 1 | 2 3 | 4 5   hold 7, 9 and 10
///
/// A bisection finds the smallest threshold. Both its ends are always bytes that some stage holds:
/// a peak that was reached, and the smallest stage that exceeded a threshold. So it ends after few
/// probes and needs no sorted list of all stages' bytes. A probe is fill_first.h. If a probe may
/// miss a cut (filling_is_exact()), sweep.h continues from its result. Then the fullest device
/// keeps its layers, and the layers on either side of it are cut anew, and so on. Pure; any thread.
/// MC-1: no other cut into as many stages has a smaller peak, unless filling is not exact and there
///       are more than kMaxSweptLayers layers.
/// Source: CAPSlog, algorithm 1, whose bisection alone is not optimal for every memory.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/capslog/layer_memory.h"
#include "stagecraft/scheduler/planners/capslog/operator_memory.h"

namespace stagecraft {

/// A sweep takes time in the square of the layers: about a second for this many.
inline constexpr int kMaxSweptLayers = 3'000;

struct MemoryCut {
  std::vector<int> ends;      ///< by device: one beyond its last layer
  std::vector<double> bytes;  ///< by device

  [[nodiscard]] double peak() const;
  [[nodiscard]] std::vector<int> sizes() const;

  friend bool operator==(const MemoryCut&, const MemoryCut&) = default;
};

/// Keeps MC-1. Errors: UsageArgument for fewer layers than devices, or no device.
/// Cost: about 10 to 30 probes of the layers for the peak, and as many for each device with the
/// layers beside it.
[[nodiscard]] MemoryCut memory_cut(const LayerMemory& memory, int devices);
/// Requires: `memory` has as many places.
[[nodiscard]] MemoryCut memory_cut(const OperatorMemory& memory, int devices);

/// Returns PlanInfeasible, with the fullest device and the bytes it lacks, if a device of the cut
/// holds more than `capacity`; else nothing.
[[nodiscard]] std::optional<Error> lack_of_memory(const MemoryCut& cut, double capacity);

}  // namespace stagecraft
