#include "stagecraft/tools/train/job/run_start.h"

#include <filesystem>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/trainer/checkpoint_folder.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/train/job/run_name.h"
#include "stagecraft/tools/train/options/update_rule.h"
#include "stagecraft/tools/train/report/error_for_user.h"
#include "stagecraft/tools/train/report/progress.h"
#include "stagecraft/tools/train/report/run_output.h"

namespace stagecraft::tools {
namespace {

/// Refuses a missing folder, unless the run saves to it: its name may be a mistake.
void require_folder(const KeepingOptions& keeping) {
  std::error_code ignored;
  if (keeping.save_dir != keeping.resume && !std::filesystem::exists(*keeping.resume, ignored)) {
    throw Error(Errc::UsageFile,
                fmt::format("--resume expects a folder of checkpoints, and '{}' does not exist; to "
                            "start one, name it in --save-dir as well",
                            *keeping.resume));
  }
}

/// Refuses to mix a new run with an earlier one, whose checkpoints a later --resume would take.
void require_own_folder(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return;  // a new one, or none that the run can use, which its places say
  }
  if (const auto newest = find_checkpoint(folder).newest) {
    throw Error(Errc::UsageFile,
                fmt::format("--save-dir: '{}' has checkpoints of an earlier run, the newest at "
                            "step {}: --resume {} continues it; or name another folder",
                            folder,
                            newest->step,
                            folder));
  }
}

void search_checkpoint(const KeepingOptions& keeping, RunStart& start, Console& console) {
  const std::string& folder = *keeping.resume;
  const CheckpointSearch search = find_checkpoint(folder);
  for (const Error& broken : search.broken) {
    console.err << fmt::format("stagecraft: --resume skips a checkpoint: {}\n", broken.message());
  }
  if (search.newest) {
    start.checkpoint = search.newest->path;
    start.resumed_at = search.newest->step;
    start.weights.reset();  // only for the first start
  } else if (!keeping.run_dir) {
    console.err << fmt::format(
        "stagecraft: --resume found no checkpoint in '{}': the run starts from the beginning\n",
        folder);
  }
  console.err << std::flush;
}

/// Refuses a checkpoint of another run, as far as it shows without the model: the run that it
/// belongs to may be complete, but this one is not.
void require_same_run(const TrainOptions& options, const RunStart& start) {
  const CheckpointReader file(*start.checkpoint);
  try {
    check_same_model(
        {file.header(), {}},
        {.seed = options.keeping.seed_from == SeedChoice::Option ? std::nullopt
                                                                 : std::optional(start.seed),
         .optimizer = std::string(optimizer_name(make_optimizer(options.optimizer))),
         .tensors = {}});
  } catch (const Error& error) {
    throw error_for_user(error, options);
  }
}

/// Returns whether a file of the run's end was written after the checkpoint: an older one is of
/// fewer steps.
bool is_written(const std::string& path, const std::string& checkpoint) {
  std::error_code ignored;  // the time of what is missing is before all others
  return std::filesystem::last_write_time(path, ignored) >=
         std::filesystem::last_write_time(checkpoint);
}

/// Returns "is at step 300, past --steps 200".
std::string place_text(const TrainOptions& options, std::int64_t step, std::int64_t steps) {
  if (step == steps) {
    return fmt::format("is at step {} of {}", step, steps);
  }
  return options.run.steps
             ? fmt::format("is at step {}, past --steps {}", step, steps)
             : fmt::format("is at step {}, past step {}, the last without --steps", step, steps);
}

}  // namespace

RunStart find_start(const TrainOptions& options, Console& console) {
  const KeepingOptions& keeping = options.keeping;
  RunStart start{
      .checkpoint = keeping.load, .weights = keeping.load_weights, .seed = options.run.seed};
  if (keeping.resume) {
    require_folder(keeping);
    search_checkpoint(keeping, start, console);
  }
  if (options.workers.attach && !options.run.dry_run) {
    start.run = run_name_in(*keeping.resume);
  }
  if (keeping.save_dir && keeping.save_dir != keeping.resume && !start.checkpoint) {
    require_own_folder(*keeping.save_dir);
  }
  if (start.checkpoint && keeping.seed_from == SeedChoice::Checkpoint) {
    start.seed = CheckpointReader(*start.checkpoint).header().seed;
  }
  return start;
}

bool has_nothing_left(const TrainOptions& options,
                      const RunStart& start,
                      const std::optional<std::int64_t>& steps,
                      Console& console) {
  if (!steps || !start.resumed_at || *start.resumed_at < *steps || options.run.dry_run) {
    return false;
  }
  require_same_run(options, start);
  const KeepingOptions& keeping = options.keeping;
  const bool is_past = *start.resumed_at > *steps;
  for (const auto& [option, path] : {std::pair{"--save", keeping.save},
                                     std::pair{"--save-weights", keeping.save_weights},
                                     std::pair{"--save-module", keeping.save_module}}) {
    std::error_code ignored;
    if (!path || (is_past ? std::filesystem::exists(*path, ignored)
                          : is_written(*path, *start.checkpoint))) {
      continue;
    }
    if (!is_past) {
      return false;  // the run was killed before it wrote them
    }
    throw Error(Errc::UsageFile,
                fmt::format("'{}' {}, and {} '{}' does not exist: give --steps {} to write it, or "
                            "more to continue",
                            *start.checkpoint,
                            place_text(options, *start.resumed_at, *steps),
                            option,
                            *path,
                            *start.resumed_at));
  }
  RunOutput output(console);
  make_progress(progress_form(options.run.json), output)
      ->report(fmt::format("{} {}: nothing left to do\n",
                           *start.checkpoint,
                           place_text(options, *start.resumed_at, *steps)),
               {{"event", "complete"},
                {"step", *start.resumed_at},
                {"steps", *steps},
                {"file", *start.checkpoint}});
  return true;
}

}  // namespace stagecraft::tools
