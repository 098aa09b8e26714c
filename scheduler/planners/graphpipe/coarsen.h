/// CoarseProblem is a problem whose cheap operators are merged with their neighbors.
///
/// It serves graphs that are too large for a search, and graphs that are series-parallel except for
/// operators that take hardly any time. Values. Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition.h"

namespace stagecraft::graphpipe {

struct CoarseProblem {
  PartitionProblem problem;
  /// by merged operator: the operators of the original problem
  std::vector<std::vector<int>> members;
};

/// Merges neighbors as contract() (contraction.h) does. Transfers between members cost nothing.
[[nodiscard]] CoarseProblem coarsen(const PartitionProblem& problem, double limit);

/// Converts the stages of the coarse problem to stages of the original one.
[[nodiscard]] Partition refine(const PartitionProblem& problem,
                               const CoarseProblem& coarse,
                               const Partition& found);

}  // namespace stagecraft::graphpipe
