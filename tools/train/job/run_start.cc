#include "stagecraft/tools/train/job/run_start.h"

#include <filesystem>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/trainer/checkpoint_folder.h"
#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/base/error.h"
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

void search_checkpoint(const std::string& folder, RunStart& start, Console& console) {
  const CheckpointSearch search = find_checkpoint(folder);
  for (const Error& broken : search.broken) {
    console.err << fmt::format("stagecraft: --resume skips a checkpoint: {}\n", broken.message());
  }
  if (search.newest) {
    start.checkpoint = search.newest->path;
    start.resumed_at = search.newest->step;
    start.weights.reset();  // only for the first start
  } else {
    console.err << fmt::format(
        "stagecraft: --resume found no checkpoint in '{}': the run starts from the beginning\n",
        folder);
  }
  console.err << std::flush;
}

}  // namespace

RunStart find_start(const TrainOptions& options, Console& console) {
  const KeepingOptions& keeping = options.keeping;
  RunStart start{
      .checkpoint = keeping.load, .weights = keeping.load_weights, .seed = options.run.seed};
  if (keeping.resume) {
    require_folder(keeping);
    search_checkpoint(*keeping.resume, start, console);
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
  const KeepingOptions& keeping = options.keeping;
  for (const auto& [option, path] : {std::pair{"--save", keeping.save},
                                     std::pair{"--save-weights", keeping.save_weights},
                                     std::pair{"--save-module", keeping.save_module}}) {
    std::error_code ignored;
    if (path && !std::filesystem::exists(*path, ignored)) {
      throw Error(
          Errc::UsageFile,
          fmt::format("the run is complete: '{}' is at step {}, but {} '{}' does not exist; "
                      "give a --steps larger than {} to continue and write it",
                      *start.checkpoint,
                      *start.resumed_at,
                      option,
                      *path,
                      *start.resumed_at));
    }
  }
  RunOutput output(console);
  make_progress(progress_form(options.run.json), output)
      ->report(fmt::format("nothing left to do: {} is at step {} of {}\n",
                           *start.checkpoint,
                           *start.resumed_at,
                           *steps),
               {{"event", "complete"},
                {"step", *start.resumed_at},
                {"steps", *steps},
                {"file", *start.checkpoint}});
  return true;
}

}  // namespace stagecraft::tools
