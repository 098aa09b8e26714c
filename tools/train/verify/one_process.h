/// OneProcess is the training in one process that --verify compares with the pipeline's. If the
/// ranks add up gradients in another order than one process, a second one adds them in that order.
///
/// The run trains it on the same batches, step by step; single-threaded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/actors/reference/sum_order.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/job/verify_order.h"
#include "stagecraft/tools/train/report/progress.h"
#include "stagecraft/tools/train/verify/verify.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

class OneProcess {
 public:
  /// `job` must outlive it.
  explicit OneProcess(const TrainJob& job);

  /// Starts from a checkpoint that a trainer of the same job has loaded.
  void load(const Checkpoint& checkpoint);

  /// Works like Trainer::scale_learning_rate.
  void scale_learning_rate(double factor);

  /// Trains on one batch; `updates`: it is the last of its step.
  void train(const WorkBatch& batch, bool updates);

  /// Compares the losses of the step that the last call of train() ended. `number`: from 1.
  void compare(std::int64_t number, const StepResult& pipeline);

  /// Compares the whole state with the trainer's, and returns the result.
  [[nodiscard]] VerifyLine compare_state(Trainer& trainer);

 private:
  struct Side {
    Side(const TrainJob& job,
         std::shared_ptr<const SumOrder> sums,
         const std::optional<std::string>& reordered);

    Reference reference;
    ReferenceStep last;
    Verifier verifier;
  };

  OneProcess(const TrainJob& job, const VerifyOrder& order);

  template <class Use>
  void for_each_side(Use&& use);
  void compare_state(Side& side, const ModuleState& state, const NamedTensors& averages) const;

  const TrainJob& job_;
  Side plain_;                    ///< adds microbatch after microbatch
  std::optional<Side> as_ranks_;  ///< adds in the order of the ranks, if that is another
};

}  // namespace stagecraft::tools
