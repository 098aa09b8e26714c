/// StepLedger: the steps a trainer has asked for, their inputs until they start, and what became of
/// them.
///
/// Shared by the trainer, whose thread enters steps and waits, and the driver actor, which starts
/// and ends them. The mutex guards everything; futures complete and tensors are destroyed outside
/// it.
///
/// SL-1: every step entered completes exactly once: with an outcome, an error, or cancelled by
///       close().
/// SL-2: inputs are tensors and therefore are here, not in the message that announces the step.
/// SL-3: `committed` and `lost` change before the step that changes them completes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"
#include "stagecraft/futures/ref.h"

namespace stagecraft {

struct StepInput {
  bool training = true;
  std::vector<std::vector<at::Tensor>> inputs, labels;  ///< per microbatch
};

/// The losses that one rank has made.
struct RankLosses {
  Rank rank;
  std::vector<MicrobatchLoss> losses;
  RemoteValue keeps;  ///< dropping the last copy releases them
};

struct StepOutcome {
  Step step;  ///< the number of updates made with this step; for an evaluation, before it
  std::vector<RankLosses> losses;  ///< one rank's, or one per replica
  double gradient_norm = 0.0;
  double seconds = 0.0;
  std::vector<RankTimes> ranks;
  std::vector<std::vector<InstructionTime>> timelines;  ///< by rank; each empty unless recorded
};

struct EnteredStep {
  Step submission;
  Future<StepOutcome> outcome;
};

class StepLedger {
 public:
  /// Enters a step. Waits first while `most` steps are under way.
  /// Errors: ClusterClosed after close().
  [[nodiscard]] EnteredStep enter(StepInput input, int most);

  /// A number for a transfer of results or state, taken from the same count as submissions.
  [[nodiscard]] Step next_request();

  /// Hands the inputs over to whoever starts the step; nothing when the step is no longer wanted.
  [[nodiscard]] std::optional<StepInput> start(Step submission);

  /// A step that ended without an error; `committed` counts it as an update.
  void complete(Step submission, StepOutcome outcome, bool committed);
  void fail(Step submission, const Error& error);

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

 private:
  struct Entry {
    std::optional<StepInput> input;
    Promise<StepOutcome> promise;
  };

  [[nodiscard]] std::optional<Entry> remove(Step submission, bool committed);

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::map<Step, Entry> under_way_;
  std::int64_t numbers_ = 0;
  std::int64_t committed_ = 0;
  std::optional<Error> lost_;
  bool closed_ = false;
};

}  // namespace stagecraft
