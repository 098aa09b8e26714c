/// SharedParts is one rank's part in a group whose ranks have parts of a bucket: shards, or parts
/// of divided weights (P-13). It adds up norms before the vote, and gathers weights after the
/// update or for tasks. It sums no gradients: those of a part that no other rank has are complete.
///
/// CopiesSum is one that sums gradients too.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/commit/group_sum.h"

namespace stagecraft {

class SharedParts : public GroupSum {
 public:
  /// `stage` outlives it; `bucket`: the number of the bucket in it.
  SharedParts(Group members, StageRuntime& stage, std::size_t bucket);

  /// Exchanges have the numbers from `step` on. Those of samples have others (kFirstExchange).
  void start_norms(Collective& collective, const Sequence& step) override;
  void finish_norms(Deadline deadline) override;
  void start_gather(Collective& collective, const Sequence& step, const SumTurn& turn) override;
  void finish_gather(Deadline deadline) override;
  void release_weights() override;
  void drop() override;

 protected:
  [[nodiscard]] const Group& members() const { return members_; }
  [[nodiscard]] StageBuckets& buckets() const { return stage_.buckets; }
  [[nodiscard]] std::size_t bucket() const { return bucket_; }

 private:
  const Group members_;
  StageRuntime& stage_;
  const std::size_t bucket_;
  std::unique_ptr<PendingResult> norms_;                 // null if there are none
  std::vector<std::unique_ptr<PendingResult>> weights_;  // by buffer
};

}  // namespace stagecraft
