#include "stagecraft/tools/train/run/job_trainer_options.h"

#include <chrono>
#include <cstdint>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/train/options/update_rule.h"
#include "stagecraft/tools/train/run/column_view.h"

namespace stagecraft::tools {

TrainerOptions trainer_options(const TrainJob& job, Progress& progress, Console& console) {
  const TrainOptions& options = job.options;
  TrainerOptions made{.learning_rate = make_learning_rate(options.optimizer, job.choice.steps),
                      .groups = make_groups(options.optimizer),
                      .decay_on = make_decay_on(options.optimizer),
                      .clip = options.optimizer.clip,
                      .clip_value = options.optimizer.clip_value,
                      .average = options.optimizer.average,
                      .master_weights = options.optimizer.master_weights,
                      .loss_scaling = loss_scaling_of(options.pipeline.precision),
                      .seed = job.start.seed,
                      .threads_per_worker = static_cast<int>(options.workers.threads),
                      .device = options.workers.device,
                      .device_transport = options.workers.device_transport,
                      .device_reduce = options.workers.device_reduce,
                      .memory_limit = options.workers.memory_limit,
                      .dispatch = options.pipeline.dispatch,
                      .record_timeline = true,
                      .mirror = job.mirrors,
                      .run = job.start.run};
  if (options.run.step_deadline) {
    made.step_deadline =
        std::chrono::milliseconds(static_cast<std::int64_t>(*options.run.step_deadline * 1000.0));
  }
  if (options.run.step_by_step) {
    if (console.in_is_taken) {
      throw Error(
          Errc::UsageArgument,
          "--step-by-step waits for lines of standard input, which another option has read: "
          "give that a file");
    }
    made.dispatch = Dispatch::PerTask;
    made.on_column = column_view(progress, console.in);
    if (!options.run.step_deadline) {
      made.step_deadline = std::chrono::hours(24);  // a person reads in between
    }
  }
  return made;
}

}  // namespace stagecraft::tools
