/// GroupSum is one rank's part in what a PlanGroup sums. It starts after the last backward whose
/// gradients it sums and ends before the vote, or does so once a round (P-11). If the group has
/// shards, its norm follows before the update, and a gather of weights after it or before tasks.
///
/// Commit makes one for each group of its rank and uses it on its plan thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/setup/plan_share.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

/// SumTurn says which sum of an update it is.
struct SumTurn {
  std::int32_t round = 0;  ///< as the plan numbers it
  bool last_batch = true;  ///< no other batch of the update follows
};

class GroupSum {
 public:
  GroupSum(const GroupSum&) = delete;
  GroupSum(GroupSum&&) = delete;
  GroupSum& operator=(const GroupSum&) = delete;
  GroupSum& operator=(GroupSum&&) = delete;
  virtual ~GroupSum() = default;

  /// Hands this rank's gradients over. `step`: the step's sequence, whose numbers are given here.
  /// Errors: those of the collective's operations.
  virtual void start(Collective& /*collective*/,
                     const Sequence& /*step*/,
                     const SumTurn& /*turn*/) {}
  /// Waits, and replaces the gradients by the sum. Errors: those of PendingResult::wait.
  virtual void finish(Deadline /*deadline*/) {}
  /// Hands over what other shards need for the norms of parameters that several of them have.
  /// Requires: finish() was called.
  virtual void start_norms(Collective& /*collective*/, const Sequence& /*step*/) {}
  virtual void finish_norms(Deadline /*deadline*/) {}
  /// Hands over the weights of this rank's shard, and takes those of the others: after the update,
  /// or for tasks.
  virtual void start_gather(Collective& /*collective*/,
                            const Sequence& /*step*/,
                            const SumTurn& /*turn*/) {}
  virtual void finish_gather(Deadline /*deadline*/) {}
  /// Gives back weights that were gathered for tasks.
  virtual void release_weights() {}
  /// Gives up what was started.
  virtual void drop() = 0;

 protected:
  GroupSum() = default;
};

/// Returns a group of the plan as the collectives know it; without members if this rank is not one
/// of them.
[[nodiscard]] Group group_of(const PlanShare& share, std::int32_t number);

/// Returns the sums by group; null for a group without this rank. `stages`: those of the share's
/// list, which outlive the sums.
/// Requires: a sound setup (verify_setup.h).
[[nodiscard]] std::vector<std::unique_ptr<GroupSum>> group_sums(const PlanShare& share,
                                                                std::vector<StageRuntime>& stages);

}  // namespace stagecraft
