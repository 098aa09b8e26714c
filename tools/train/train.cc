#include "stagecraft/tools/train/train.h"

#include <cstdint>
#include <optional>
#include <variant>

#include "stagecraft/actors/cluster/environment_options.h"
#include "stagecraft/actors/executor/device/cuda_library.h"
#include "stagecraft/actors/executor/device/device_name.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tools/launch/each_task_trains.h"
#include "stagecraft/tools/run_record/run_folder.h"
#include "stagecraft/tools/train/job/dry_run.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/job/run_start.h"
#include "stagecraft/tools/train/job/threads.h"
#include "stagecraft/tools/train/options/parse_options.h"
#include "stagecraft/tools/train/record/run_events.h"
#include "stagecraft/tools/train/record/run_identity.h"
#include "stagecraft/tools/train/report/error_for_user.h"
#include "stagecraft/tools/train/run/run.h"
#include "stagecraft/tools/train/run/run_cluster.h"

namespace stagecraft::tools {
namespace {

/// Returns the step at which the run ends, as far as the options alone say it.
std::optional<std::int64_t> steps_asked(const TrainOptions& options) {
  return options.model.file ? options.run.steps
                            : std::optional(options.run.steps.value_or(kUsualSteps));
}

/// Opens the device of ranks that are threads of this process, before LibTorch asks for devices.
void open_device(const TrainOptions& options) {
  const bool has_ranks =
      options.workers.kind == WorkerKind::Threads || spawn_options_of_environment().local_ranks > 0;
  if (!has_ranks || !named_device(options.workers.device).is_cuda()) {
    return;
  }
  if (options.run.dry_run) {
    (void)try_open_cuda();  // the bill has the memory of GPUs, if there are any
    return;
  }
  try {
    open_cuda();
  } catch (const Error& error) {
    throw error_for_user(error, options);
  }
}

/// `folder`: of --run-dir, or null.
ExitCode train_by(const TrainOptions& options, RunFolder* folder, Console& console) {
  open_device(options);
  check_hosts(options);
  const RunStart start = find_start(options, console);
  const auto is_complete = [&](const std::optional<std::int64_t>& steps) {
    const bool complete = has_nothing_left(options, start, steps, console);
    if (complete && folder != nullptr) {
      folder->append(complete_event(*start.resumed_at, *steps));
    }
    return complete;
  };
  if (is_complete(steps_asked(options))) {
    return ExitCode::Good;
  }
  const auto held = make_held_cluster(options, console);
  const TrainJob job = make_job(options, start, console);
  if (options.run.verbose) {
    if (!options.run.dry_run) {  // which explains the program, with these times
      console.err << to_string(job.execution.program.compiled().passes);
    }
    console.err << to_string(job.execution.lowering, "lowered");
  }
  if (options.run.dry_run) {
    print(dry_run(job), console);
    return ExitCode::Good;
  }
  if (is_complete(job.choice.steps)) {
    return ExitCode::Good;
  }
  if (folder != nullptr) {
    write_strategy(job, folder->places(), console);
  }
  check_threads(
      threads_to_run(job.choice.layout.ranks(), static_cast<int>(options.workers.threads)));
  try {
    return TrainRun(job, make_cluster(job, held), folder, console).run();
  } catch (const Error& error) {
    throw error_for_user(error, options);
  }
}

}  // namespace

ExitCode train(const std::vector<std::string>& arguments, Console& console) {
  const auto parsed = parse_train_options(arguments);
  if (const auto* help = std::get_if<HelpText>(&parsed)) {
    print(help->text, console);
    return ExitCode::Good;
  }
  refuse_to_train_in_each_task();
  const SingleThreaded alone;  // this thread's computation must not take threads from the workers
  const auto& options = std::get<TrainOptions>(parsed);
  if (!options.keeping.run_dir || options.run.dry_run) {
    return train_by(options, nullptr, console);
  }
  RunFolder folder(*options.keeping.run_dir, run_identity(options), console);
  folder.append(start_event(options, arguments));
  return with_end(folder, [&] { return train_by(options, &folder, console); });
}

}  // namespace stagecraft::tools
