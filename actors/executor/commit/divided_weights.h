/// DividedWeights is one rank's part in a group that divides the weights of a chunk (P-13). Nothing
/// is summed before the vote: a rank's gradients of its part are complete. The group adds up norms,
/// and gathers the weights for evaluations.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/commit/group_sum.h"

namespace stagecraft {

class DividedWeights final : public GroupSum {
 public:
  /// `stage` outlives it; `bucket`: the number of the divided bucket in it.
  DividedWeights(Group members, StageRuntime& stage, std::size_t bucket);

  void start_norms(Collective& collective, const Sequence& step) override;
  void finish_norms(Deadline deadline) override;
  void start_gather(Collective& collective, const Sequence& step, const SumTurn& turn) override;
  void finish_gather(Deadline deadline) override;
  void release_weights() override;
  void drop() override;

 private:
  const Group members_;
  StageRuntime& stage_;
  const std::size_t bucket_;
  std::unique_ptr<PendingResult> norms_;                 // null if there are none
  std::vector<std::unique_ptr<PendingResult>> weights_;  // by parameter
};

}  // namespace stagecraft
