/// memory_cut cuts operators, in the order of the forward, over devices so that the fullest device
/// holds as few bytes as possible.
///
///     kept 5 2 6 1 5 3, received - 1 2 1 2 1   on 3 devices:   0 1 | 2 3 | 4 5   hold 7, 9, 10
///
/// A bisection finds the smallest threshold. Both its ends are always bytes that some stage holds:
/// a peak that was reached, and the smallest stage that exceeded a threshold. So it ends after few
/// probes and needs no sorted list of all stages' bytes. fill_first() makes a probe. If a probe may
/// miss a cut (filling_is_exact()), a Sweep continues from its result. Then the fullest device
/// keeps its operators, and those on either side of it are cut again, and so on. Pure; any thread.
/// MC-1: no other cut into as many stages has a smaller peak, unless filling is not exact and there
///       are more than kMaxSweptOperators operators.
/// Source: CAPSlog, algorithm 1, whose bisection alone is not optimal for every memory.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/capslog/operator_memory.h"

namespace stagecraft {

/// The most operators of a sweep, which takes time in their square: about a second for this many.
inline constexpr int kMaxSweptOperators = 3'000;

struct MemoryCut {
  std::vector<int> ends;      ///< by device: one beyond its last operator
  std::vector<double> bytes;  ///< by device

  [[nodiscard]] double peak() const;
};

/// Returns a cut. Keeps MC-1.
/// Requires: `memory` has as many places as devices.
/// Errors: UsageArgument for fewer operators than devices, or no device.
/// Cost: about 10 to 30 probes of the operators for the peak, and as many for each device with the
/// operators beside it.
[[nodiscard]] MemoryCut memory_cut(const OperatorMemory& memory, int devices);

/// Returns PlanInfeasible, with the fullest device and the bytes that it lacks, if a device of the
/// cut holds more than `capacity`; otherwise nothing.
[[nodiscard]] std::optional<Error> lack_of_memory(const MemoryCut& cut, double capacity);

}  // namespace stagecraft
