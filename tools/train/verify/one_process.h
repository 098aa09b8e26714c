/// OneProcess: with --verify, the same training in one process, compared with the pipeline's.
///
/// Trained by the run on the same batches, step by step; single-threaded.
#pragma once

#include <cstdint>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/report/progress.h"
#include "stagecraft/tools/train/verify/verify.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

class OneProcess {
 public:
  /// `job` outlives it.
  explicit OneProcess(const TrainJob& job);

  /// Starts from a checkpoint that a trainer of the same job has loaded.
  void load(const Checkpoint& checkpoint);

  /// Trains on one batch; `updates`: it is the last of its step.
  void train(const WorkBatch& batch, bool updates);

  /// Compares the losses of the step that the last call of train() ended. `number`: from 1.
  void compare(std::int64_t number, const StepResult& pipeline);

  /// Compares the whole state with the trainer's, and returns the result.
  [[nodiscard]] VerifyLine compare_state(Trainer& trainer);

 private:
  const TrainJob& job_;
  Reference reference_;
  ReferenceStep last_;
  Verifier verifier_;
};

}  // namespace stagecraft::tools
