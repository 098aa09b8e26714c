/// measure_overhead: what a step takes beside operators and transfers. Used by profile().
#pragma once

namespace stagecraft {

/// Units: seconds.
struct Overhead {
  double task = 0;  ///< of each forward and backward
  double step = 0;  ///< of each step, whatever its tasks
};

/// Trains a model of one number by one rank, a thread of this process: with so little to compute,
/// steps of many and of few microbatches differ by their tasks alone. Its three operators count as
/// overhead.
/// Errors: those of starting a rank.
/// Cost: some tenths of a second.
[[nodiscard]] Overhead measure_overhead();

}  // namespace stagecraft
