#include "stagecraft/scheduler/planners/graphpipe/problem/partition_problem.h"

#include <algorithm>

namespace stagecraft::graphpipe {

std::vector<double> least_work(const PartitionProblem& problem) {
  std::vector<double> work(at(problem.operators), std::numeric_limits<double>::infinity());
  for (std::size_t op = 0; op < work.size(); ++op) {
    for (const Variant& variant : problem.variants) {
      work[op] = std::min(work[op], variant.time[op] * variant.devices);
    }
  }
  return work;
}

}  // namespace stagecraft::graphpipe
