/// CoarseProblem: a problem whose cheap operators have become one with their neighbours.
///
/// For graphs that are larger than a search wants them, or that are series-parallel but for what
/// hardly takes time. Values. Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/partition.h"

namespace stagecraft::graphpipe {

struct CoarseProblem {
  PartitionProblem problem;
  std::vector<std::vector<int>> members;  ///< of each of its operators; of the original problem
};

/// Makes one of neighbours as contract() (contraction.h) does; what passes between members costs
/// nothing.
[[nodiscard]] CoarseProblem coarsen(const PartitionProblem& problem, double limit);

/// The stages of the coarse problem as those of the original one.
[[nodiscard]] Partition refine(const PartitionProblem& problem,
                               const CoarseProblem& coarse,
                               const Partition& found);

}  // namespace stagecraft::graphpipe
