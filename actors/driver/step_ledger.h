/// StepLedger holds the steps that a trainer has entered, their inputs until they start, and their
/// outcomes.
///
/// The trainer, whose thread enters steps and waits, and the driver actor, which starts and ends
/// them, share it. The mutex guards everything; futures complete and tensors are destroyed outside
/// of it.
///
/// SL-1: every step entered completes exactly once: with a result, an error, or cancelled by
///       close().
/// SL-2: inputs are here and not in the message that announces the step, because they are tensors.
/// SL-3: `committed` and `lost` change before the step that changes them completes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/actors/executor/optimizer/group_updates.h"
#include "stagecraft/actors/executor/step/local_batch.h"
#include "stagecraft/actors/executor/step/step_parts.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// StateFacts packs what only the driver's process knows of a state (StepOrder::facts), with these
/// parts of it. Any thread may call it.
using StateFacts = std::function<std::string(
    std::int64_t updates, std::uint64_t seed, const LossScale&, const FrozenUpdates&)>;

struct StepInput {
  std::int32_t program = kTraining;
  std::shared_ptr<const Plan> plan;                     ///< the plan by which the step runs
  std::uint64_t seed = 0;                               ///< StepOrder::seed
  std::vector<std::vector<at::Tensor>> inputs, labels;  ///< per microbatch
  LocalBatch local;                                     ///< replaces them if it has a source
  PartRuns parts;                                       ///< the parts of the batch
  std::optional<double> learning_rate;                  ///< none: as the options say
  double rate_factor = 1.0;                             ///< of any
  std::optional<double> clip;                           ///< none: as the options say
  GroupFreezes frozen;                                  ///< likewise
  // For training: the update of this batch, and the batch's number in it, both from 0.
  std::int64_t update = 0;
  std::int32_t batch = 0;
  bool updates = true;  ///< it is the last batch of the update
  /// Futures of the plan's results, in their order. The driver puts them here before it orders the
  /// step. Null if the plan has none.
  std::shared_ptr<std::vector<Future<at::Tensor>>> results;
};

struct EnteredStep {
  Submission submission;
  Future<StepResult> result;
};

class StepLedger {
 public:
  explicit StepLedger(const std::optional<LossScaling>& scaling = std::nullopt,
                      GroupUpdates groups = {},
                      StateFacts facts = nullptr);

  /// Enters a step. Waits first while `most` steps are in progress.
  /// Errors: ClusterClosed after close(); the error of break_down().
  [[nodiscard]] EnteredStep enter(StepInput input, int most);

  /// Returns a number for a transfer of state, from the same count as submissions.
  [[nodiscard]] Submission next_request();

  /// Hands the inputs over to start the step; nothing if the step was cancelled meanwhile.
  [[nodiscard]] std::optional<StepInput> start(Submission submission);

  /// Begins the update that follows. Returns the numbers of its groups. Errors: those of
  /// GroupUpdates::begin.
  [[nodiscard]] std::vector<std::int64_t> begin_update(const GroupFreezes& frozen);

  /// Completes a step that ended without an error; `committed` counts it as an update, whose result
  /// changes the loss scale, and which groups were in.
  void complete(Submission submission, StepResult result, bool committed);
  void fail(Submission submission, const Error& error);

  /// Marks the weights as undefined, for this reason, until resume().
  void lose(const Error& why);
  [[nodiscard]] std::optional<Error> lost() const;
  /// Marks the weights as those after `committed` updates. `scale`: that of the next update in the
  /// run that was loaded, with the groups that were frozen in that run (GroupUpdates::replace);
  /// none: both as they were then in this run.
  void resume(std::int64_t committed,
              std::optional<LossScale> scale = std::nullopt,
              const std::optional<FrozenUpdates>& frozen = std::nullopt);

  /// Returns the updates made so far.
  [[nodiscard]] std::int64_t committed() const;
  /// Returns the scale of the next update. Without scaling it is that of the run before, to be kept
  /// for a run that scales.
  [[nodiscard]] LossScale loss_scale() const;
  /// Returns the groups that were frozen in updates so far.
  [[nodiscard]] FrozenUpdates frozen_updates() const;
  /// Returns the facts of the state after so many updates, which has been or is about to be; empty
  /// if nobody needs them. `seed`: of the steps after it.
  [[nodiscard]] std::string facts(std::int64_t updates, std::uint64_t seed) const;
  /// Notes the update after these, which some ranks made in a step that failed: recovery may go
  /// forward to it.
  void note_partial_update(bool skipped);

  [[nodiscard]] bool has_steps() const;  ///< one is in progress

  /// Waits until no step is in progress. Each step ends by its deadline, so drain() ends too.
  void drain();

  /// Cancels every step in progress, and refuses later ones.
  void close();

  /// Fails the steps in progress, because their driver has gone. Another driver may run later ones.
  void fail_under_way(const Error& why);

  /// Fails all steps in progress and all later ones with `why`, because no driver runs steps any
  /// more.
  void break_down(const Error& why);

 private:
  struct Entry {
    std::optional<StepInput> input;
    Promise<StepResult> promise;
  };

  [[nodiscard]] LossScale scale_after(std::int64_t updates) const;
  /// Returns how many of the first `steps` steps changed weights.
  [[nodiscard]] std::int64_t updates_in(std::int64_t steps) const;
  void note_update(bool skipped);
  [[nodiscard]] std::optional<Entry> remove(Submission submission, bool committed);
  [[nodiscard]] std::map<Submission, Entry> refuse_from_now_on(const Error& why);

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::map<Submission, Entry> under_way_;
  std::int64_t numbers_ = 0;
  std::int64_t committed_ = 0;
  const std::optional<LossScaling> scaling_;
  const StateFacts facts_;
  /// By the number of updates after which they hold. Between two of them only `good` counts on.
  std::map<std::int64_t, LossScale> scales_;
  GroupUpdates groups_;
  std::optional<Error> lost_;
  std::optional<Error> closed_;  ///< the error of refused steps
};

}  // namespace stagecraft
