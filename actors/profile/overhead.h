/// measure_overhead measures the time of a step in addition to operators and transfers. profile()
/// uses it.
#pragma once

namespace stagecraft {

/// Overhead holds the result. Units: seconds.
struct Overhead {
  double task = 0;  ///< of each forward and backward
  double step = 0;  ///< of each step, for any tasks
};

/// Trains a model of one number on one rank, a thread of this process. It computes so little that
/// steps of many and of few microbatches differ by their tasks alone. Its three operators count as
/// overhead.
/// Errors: those of starting a rank.
/// Cost: some tenths of a second.
[[nodiscard]] Overhead measure_overhead();

}  // namespace stagecraft
