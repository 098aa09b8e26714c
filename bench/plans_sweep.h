/// Sweep: one split moved through a model, two stages by 1F1B on two workers: what is predicted for
/// it against what it takes.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/plans_ways.h"

namespace stagecraft::bench {

/// Units: seconds of a step.
struct SplitPoint {
  int at = 0;  ///< operators before it
  double predicted = 0;
  Quartiles measured;
};

struct Sweep {
  std::string name;  ///< of the subject
  int operators = 0;
  double one_worker_by = 1;        ///< how many times as long as predicted one worker takes, uncut
  std::vector<SplitPoint> points;  ///< ascending
};

/// Measures `splits` of them, evenly through the operators; where several would be the same, as
/// operators stay together, one. Requires: options of two workers.
[[nodiscard]] Sweep sweep(const Subject& subject, const WaysOptions& options, int splits);

/// A line for each split.
[[nodiscard]] std::string text_of(const Sweep& sweep);

}  // namespace stagecraft::bench
