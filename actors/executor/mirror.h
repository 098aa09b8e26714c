/// Mirror: keeps copies of this rank's committed states and of those of the rank before it, so that
/// a rank that is lost gets its state back without a checkpoint (mirror_keeper.h says which, and
/// why they suffice).
///
/// Made by the executor where TrainerOptions::mirror is set, used on its plan thread.
/// MR-1: nobody waits here: a copy is made between two steps, as the next one writes to the living
///       tensors, sent off, and taken in whenever it has come.
/// MR-2: a failure here costs a recovery point, never a step: it is logged, and the last recovery
///       point stays.
/// MR-3: copies outlive the abort of a step: their tags are of a plan of their own, whose epoch
///       ends when all ranks are given another state.
/// Cost: memory for two packed copies of the own state and two of a neighbour's, and bandwidth for
/// one of them per step. Between threads of a process sender and keeper share them: two in all.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/mirror_keeper.h"
#include "stagecraft/actors/executor/rank_setup.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class Mirror {
 public:
  /// Errors: UsageArgument unless at least two ranks vote.
  Mirror(const RankSetup& setup, std::shared_ptr<Transport> transport);

  /// This rank has taken over `state`, the one after `updates` updates, by the transfer `request`,
  /// as all ranks have. Copies made before it are dropped, but those of this very state if it
  /// came out of mirrors; a new round begins.
  void restart(Submission request,
               std::int64_t updates,
               bool from_mirrors,
               const std::vector<NamedTensor>& state);

  /// A step has changed weights: `state` is the one after `updates` updates. Begins a round, unless
  /// one is under way.
  void committed(Submission step, std::int64_t updates, const std::vector<NamedTensor>& state);

  /// For the ballot, and what the vote makes of it.
  [[nodiscard]] Submission newest_kept();
  void agreed(Submission oldest) { keeper_.agreed(oldest); }

  [[nodiscard]] MirrorStock stock();
  /// Packed (packed_state.h). Errors: WorkerLost when there is none.
  [[nodiscard]] at::Tensor own(std::int64_t updates) const;
  [[nodiscard]] at::Tensor kept(std::int64_t updates) const;

 private:
  void begin(Submission round, std::int64_t updates, const std::vector<NamedTensor>& state);
  [[nodiscard]] at::Tensor make_copy(const std::vector<NamedTensor>& state);
  void take_in();

  const Rank self_;
  const PlanId plan_;
  const std::shared_ptr<Transport> transport_;
  Rank before_, keeper_rank_;
  Epoch epoch_;
  MirrorKeeper keeper_;
  Future<at::Tensor> arriving_;  ///< of the round under way; invalid once it was taken in
  at::Tensor last_, spare_;      ///< the newest copy, and the one before: memory for the next
};

}  // namespace stagecraft
