/// DagMatcher finds the computing nodes that a filter selects.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/strategy/filter.h"

namespace stagecraft {

class DagMatcher {
 public:
  /// Makes the index by stage and microbatch. Views `dag`, whose computing nodes keep their numbers
  /// and kinds while the matcher is used.
  explicit DagMatcher(const TrainingDag& dag);

  /// Returns the matched nodes, ascending.
  [[nodiscard]] std::vector<int> match(const Filter& filter) const;
  /// Returns why a filter cannot be used: it names a tag that the DAG does not have, or matches
  /// nothing. Empty for a good one. `matched`: the result of match().
  [[nodiscard]] std::string fault(const Filter& filter, const std::vector<int>& matched) const;

 private:
  [[nodiscard]] bool matches(const DagNode& node, const Filter& filter) const;

  const TrainingDag* dag_;
  std::vector<int> nodes_;        // computing nodes, by stage, then microbatch
  std::vector<int> stage_begin_;  // positions in nodes_, by stage
};

}  // namespace stagecraft
