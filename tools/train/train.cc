#include "stagecraft/tools/train/train.h"

#include <variant>

#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/tools/launch/one_run.h"
#include "stagecraft/tools/train/job/dry_run.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/job/resume.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/options/threads.h"
#include "stagecraft/tools/train/report/told_error.h"
#include "stagecraft/tools/train/run/run.h"

namespace stagecraft::tools {

ExitCode train(const std::vector<std::string>& arguments, Console& console) {
  const auto parsed = parse_train_options(arguments);
  if (const auto* help = std::get_if<HelpText>(&parsed)) {
    print(help->text, console);
    return ExitCode::Good;
  }
  refuse_to_train_in_each_process();
  const SingleThreaded alone;  // this thread's computation must not take threads from the workers
  const TrainOptions options = resumed(std::get<TrainOptions>(parsed), console);
  if (!options.all_steps && has_nothing_left(options, console)) {
    return ExitCode::Good;
  }
  const auto held = make_held_cluster(options, console);
  const TrainJob job = make_job(options, console);
  if (job.options.dry_run) {
    print(dry_run(job), console);
    return ExitCode::Good;
  }
  if (has_nothing_left(job.options, console)) {
    return ExitCode::Good;
  }
  check_threads(threads_to_run(job.options, job.choice));
  try {
    return TrainRun(job, make_cluster(job, held), console).run();
  } catch (const Error& error) {
    throw told_error(error, job.options);
  }
}

}  // namespace stagecraft::tools
