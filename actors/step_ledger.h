/// StepLedger: the steps a trainer has asked for, their inputs until they start, and what became of
/// them.
///
/// Shared by the trainer, whose thread enters steps and waits, and the driver actor, which starts
/// and ends them. The mutex guards everything; futures complete and tensors are destroyed outside
/// it.
///
/// SL-1: every step entered completes exactly once: with a result, an error, or cancelled by
///       close().
/// SL-2: inputs are tensors and therefore are here, not in the message that announces the step.
/// SL-3: `committed` and `lost` change before the step that changes them completes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/local_batch.h"
#include "stagecraft/actors/executor/step_parts.h"
#include "stagecraft/actors/step_result.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

struct StepInput {
  std::int32_t program = kTraining;
  std::shared_ptr<const Plan> plan;                     ///< its, by which the step runs
  std::uint64_t seed = 0;                               ///< StepOrder::seed
  std::vector<std::vector<at::Tensor>> inputs, labels;  ///< per microbatch
  LocalBatch local;                                     ///< in their place, where it has a source
  PartRuns parts;                                       ///< what these are
  std::optional<double> learning_rate;                  ///< none: what the options say
  // Of training: a batch of which update, counted from 0 each.
  std::int64_t update = 0;
  std::int32_t batch = 0;
  bool updates = true;  ///< it is the update's last one
  /// Where the driver puts what arrives of the plan's results, in their order, before it orders the
  /// step; null where the plan has none.
  std::shared_ptr<std::vector<Future<at::Tensor>>> results;
};

struct EnteredStep {
  Submission submission;
  Future<StepResult> result;
};

class StepLedger {
 public:
  /// Enters a step. Waits first while `most` steps are under way.
  /// Errors: ClusterClosed after close(); what it broke down with.
  [[nodiscard]] EnteredStep enter(StepInput input, int most);

  /// A number for a transfer of state, taken from the same count as submissions.
  [[nodiscard]] Submission next_request();

  /// Hands the inputs over to whoever starts the step; nothing when the step is no longer wanted.
  [[nodiscard]] std::optional<StepInput> start(Submission submission);

  /// A step that ended without an error; `committed` counts it as an update.
  void complete(Submission submission, StepResult result, bool committed);
  void fail(Submission submission, const Error& error);

  /// From now on weights are undefined, for this reason; ends with resume().
  void lose(const Error& why);
  [[nodiscard]] std::optional<Error> lost() const;
  /// Weights are those after `committed` updates.
  void resume(std::int64_t committed);

  /// Updates made so far.
  [[nodiscard]] std::int64_t committed() const;

  /// Waits until no step is under way. Each ends by its deadline, so this does too.
  void drain();

  /// Cancels every step under way; later ones are refused.
  void close();

  /// Whoever ran the steps under way has gone; another may run later ones.
  void fail_under_way(const Error& why);

  /// Nobody runs steps any more: those under way and later ones fail with `why`.
  void break_down(const Error& why);

 private:
  struct Entry {
    std::optional<StepInput> input;
    Promise<StepResult> promise;
  };

  [[nodiscard]] std::optional<Entry> remove(Submission submission, bool committed);
  [[nodiscard]] std::map<Submission, Entry> refuse_from_now_on(const Error& why);

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::map<Submission, Entry> under_way_;
  std::int64_t numbers_ = 0;
  std::int64_t committed_ = 0;
  std::optional<Error> lost_;
  std::optional<Error> closed_;  ///< what steps are refused with
};

}  // namespace stagecraft
