/// CopiesSum sums the gradients of a bucket over the copies of its stage, before the vote. Each
/// copy has seen its share of the microbatches, and all continue with the same bits.
///
/// It also gives all copies the buffers of the first copy, as data-parallel training in PyTorch
/// does: statistics are then those of the first copy's share of the microbatches.
/// If the copies have shards, a rank gets the sum of its own alone: it updates that part of the
/// weights and gathers the others (BU-4).
/// SU-1: copies on one rank are added in their order, and the ranks' sums in ascending order of
///       rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/commit/shared_parts.h"

namespace stagecraft {

class CopiesSum final : public SharedParts {
 public:
  /// `mine`: the copies on this rank, which outlive the sum. `bucket`: its number in them.
  /// `brings_buffers`: its sum brings the stage's buffers. `first`: the first copy of all is
  /// mine.front().
  /// `rounds`: of a step, each with a sum.
  /// Requires: one copy here if the bucket has shards.
  CopiesSum(Group members,
            std::vector<StageRuntime*> mine,
            std::size_t bucket,
            bool first,
            std::int32_t rounds = 1,
            bool brings_buffers = true);

  void start(Collective& collective, const Sequence& step, const SumTurn& turn) override;
  void finish(Deadline deadline) override;
  void start_norms(Collective& collective, const Sequence& step) override;
  void start_gather(Collective& collective, const Sequence& step, const SumTurn& turn) override;
  void drop() override;

 private:
  /// Numbers the exchanges that follow the sums of gradients.
  enum class Exchange : std::uint8_t { Buffers, Norms, Weights };

  [[nodiscard]] bool has_shards() const;
  [[nodiscard]] std::int32_t first_number(std::int32_t round) const;
  [[nodiscard]] std::int32_t number_of(Exchange exchange) const;
  void start_buffers(Collective& collective, const Sequence& sequence);
  void take_buffers(Deadline deadline);

  const std::vector<StageRuntime*> mine_;
  const bool first_;
  const std::int32_t rounds_;
  const bool brings_buffers_;
  std::vector<std::unique_ptr<PendingResult>> sums_;  // by buffer of gradients
  std::unique_ptr<PendingResult> buffers_;            // null if there are none
};

}  // namespace stagecraft
