#include "stagecraft/tools/train/report/error_for_user.h"

namespace stagecraft::tools {

Error error_for_user(const Error& error, const TrainOptions& options) {
  return in_words(
      error,
      {.options = {{"clip", "--clip"},
                   {"device", "--device"},
                   {"memory_limit", "--memory-limit"},
                   {"step_deadline", "--step-deadline"},
                   {"threads_per_worker", "--threads-per-worker"}},
       .advice = options.keeping.save_dir
                     ? "start the run again; it resumes from its last checkpoint"
                     : "start the run again; with --resume DIR --save-every N it would resume from "
                       "its last checkpoint"});
}

}  // namespace stagecraft::tools
