/// Commit is the end of a training step on one rank. Gradients are summed over copies and over
/// ties, all ranks vote, and weights are updated. For tasks of any step it gathers the weights of
/// which ranks have parts.
///
/// The executor makes it and uses it on its plan thread.
/// CT-1: no weight changes before the vote is over.
/// CT-2: the first batch of an update begins a bucket. Gradients of further batches are added to
///       it, and the mean is over the microbatches of all of them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "stagecraft/actors/executor/commit/group_sum.h"
#include "stagecraft/actors/executor/device/step_times.h"
#include "stagecraft/actors/executor/mirror/mirror.h"
#include "stagecraft/actors/executor/optimizer/group_updates.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/executor/step/step_record.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

class Commit {
 public:
  /// Views all arguments. `collective`: waits by this clock. `mirror`: null if there is none.
  Commit(const RankSetup& setup,
         Collective& collective,
         const Clock& clock,
         StepTimes& times,
         std::vector<StageRuntime>& stages,
         Mirror* mirror);

  /// `tags`: plan, epoch and submission of the step's collectives.
  void begin_step(const StepOrder& order, const Sequence& tags);

  /// Begins and ends a sum of a group of the plan, or the gather of its weights. Requires: the
  /// Start or Finish of a group of this rank, in the list of the step's program.
  void start(const Instruction& collective);
  void finish(const Instruction& collective);
  /// Gives back the weights that a group has gathered. Requires: the Release of one of this rank.
  void release(const Instruction& of);
  /// Gives up the sums and gathers that a failed step has begun, and gives back what it gathered.
  void drop_sums();
  /// Checks the losses of a batch without a vote, before the next batches are added. Errors:
  /// NonFinite.
  void refuse_non_finite_losses(const std::vector<MicrobatchLoss>& losses) const;
  /// Votes with the norms of the mean gradients.
  /// Errors: NonFinite for a loss or a gradient; those of vote().
  void cast_vote(const std::vector<MicrobatchLoss>& losses);
  /// Updates a bucket of the stage, by its number in the stage; in a step that is skipped,
  /// keeps its gradients only.
  void update(StageRuntime& stage, std::size_t bucket);

  /// Returns whether all ranks have voted, whatever the result. Every rank has then issued all its
  /// transfers of the step.
  [[nodiscard]] bool has_voted() const { return voted_; }
  /// Returns whether weights may have changed.
  [[nodiscard]] bool is_past_the_vote() const { return verdict_.has_value(); }
  /// Returns whether the vote leaves all weights as they are (LX-1).
  [[nodiscard]] bool skips() const { return skips_; }
  /// Returns the norm of the mean gradient; not finite in a step that is skipped. Requires:
  /// is_past_the_vote().
  [[nodiscard]] double gradient_norm() const { return verdict_->total_norm; }

 private:
  [[nodiscard]] Deadline deadline() const;
  [[nodiscard]] bool gathers(const Instruction& collective) const;
  /// Returns the number by which sums of gradients are divided to get their mean.
  [[nodiscard]] double divisor() const;
  /// Returns the numbers of the update, without those that were skipped.
  [[nodiscard]] UpdateNumbers numbers() const;
  void exchange_norms();
  [[nodiscard]] Ballot make_ballot();

  const RankSetup& setup_;
  Collective& collective_;
  const Clock& clock_;
  StepTimes& times_;
  std::vector<StageRuntime>& stages_;
  Mirror* const mirror_;
  Group everybody_;
  std::vector<std::unique_ptr<GroupSum>> sums_;  // by group of the plan
  StepOrder order_;
  PartRuns parts_;  ///< of the update so far
  Sequence tags_;
  bool voted_ = false;
  std::optional<VoteResult> verdict_;  ///< of a vote that found all finite, or that skips
  bool skips_ = false;
};

}  // namespace stagecraft
