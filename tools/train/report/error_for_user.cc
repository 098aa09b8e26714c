#include "stagecraft/tools/train/report/error_for_user.h"

#include <string>

#include <fmt/format.h>

#include "stagecraft/tools/train/work/asked_weights.h"

namespace stagecraft::tools {
namespace {

/// Says which options make the model of a checkpoint.
std::string options_of_checkpoint(const TrainOptions& options) {
  return fmt::format(
      "give the options of the run that saved it: {}, --optimizer, --freeze, --average and "
      "--master-weights",
      options_of_model(options.model));
}

std::string advice_for(const Error& error, const TrainOptions& options) {
  if (error.code() == Errc::CheckpointMismatch) {
    return options_of_checkpoint(options);
  }
  const KeepingOptions& keeping = options.keeping;
  if (!keeping.save_dir || !keeping.save_every) {
    return fmt::format(
        "start the run again; with {} --save-every N it would resume from its last "
        "checkpoint",
        keeping.run_dir ? "--run-dir " + *keeping.run_dir
                        : "--resume " + keeping.save_dir.value_or("DIR"));
  }
  if (keeping.resume == keeping.save_dir) {
    return "start the run again; it resumes from its last checkpoint";
  }
  const std::string instead = keeping.load     ? " instead of --load " + *keeping.load
                              : keeping.resume ? " instead of --resume " + *keeping.resume
                                               : "";
  return fmt::format("start the run again with --resume {}{}; it resumes from its last checkpoint",
                     *keeping.save_dir,
                     instead);
}

}  // namespace

Error error_for_user(const Error& error, const TrainOptions& options) {
  return in_words(error,
                  {.options = {{"average", "--average"},
                               {"clip", "--clip"},
                               {"clip_value", "--clip-value"},
                               {"device", "--device"},
                               {"master_weights", "--master-weights"},
                               {"memory_limit", "--memory-limit"},
                               {"mirror", "--mirror"},
                               {"optimizer", "--optimizer"},
                               {"step_deadline", "--step-deadline"},
                               {"threads_per_worker", "--threads-per-worker"},
                               {"SeedFrom::Checkpoint or SeedFrom::Trainer",
                                "--seed-from checkpoint or --seed-from option"}},
                   .advice = advice_for(error, options)});
}

}  // namespace stagecraft::tools
