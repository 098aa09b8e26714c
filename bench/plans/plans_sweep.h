/// Sweep moves one split through a model, as two stages by 1F1B on two workers, and compares the
/// predicted with the measured time.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/plans/plans_ways.h"

namespace stagecraft::bench {

/// SplitPoint holds the times of one split. Units: seconds of a step.
struct SplitPoint {
  int at = 0;  ///< operators before the split
  double predicted = 0;
  Quartiles measured;
};

struct Sweep {
  std::string name;  ///< the subject's
  int operators = 0;
  double one_worker_by = 1;        ///< measured over predicted time, uncut on one worker
  std::vector<SplitPoint> points;  ///< ascending
};

/// Measures `splits` splits, spread evenly over the operators. Splits that are the same, because
/// operators must stay together, are measured once. Requires: options of two workers.
[[nodiscard]] Sweep sweep(const Subject& subject, const WaysOptions& options, int splits);

/// Returns a line for each split.
[[nodiscard]] std::string text_of(const Sweep& sweep);

}  // namespace stagecraft::bench
