/// DagMatcher finds the computing nodes that a filter selects.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/directives/strategy_faults.h"
#include "stagecraft/scheduler/strategy/filter.h"

namespace stagecraft {

class DagMatcher {
 public:
  /// Makes the index by stage and microbatch. Views `dag`, whose computing nodes must keep their
  /// numbers and kinds while the matcher is used.
  explicit DagMatcher(const TrainingDag& dag);

  /// Returns the matched nodes of a directive's filter, ascending. Notes a fault and returns none
  /// if the filter names a tag that the DAG does not have, or matches nothing.
  [[nodiscard]] std::vector<int> match(std::size_t directive,
                                       const Filter& filter,
                                       StrategyFaults& faults) const;

 private:
  [[nodiscard]] std::vector<int> match(const Filter& filter) const;
  /// Returns the fault of a filter; empty for a good one. `matched`: the nodes that it matches.
  [[nodiscard]] std::string fault(const Filter& filter, const std::vector<int>& matched) const;
  [[nodiscard]] bool matches(const DagNode& node, const Filter& filter) const;

  const TrainingDag* dag_;
  std::vector<int> nodes_;        // computing nodes, by stage, then microbatch
  std::vector<int> stage_begin_;  // positions in nodes_, by stage
};

}  // namespace stagecraft
