#include "stagecraft/tools/train/job/run_start.h"

#include <filesystem>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/trainer/checkpoint_file.h"
#include "stagecraft/actors/trainer/checkpoints.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/train/report/progress.h"
#include "stagecraft/tools/train/report/run_output.h"

namespace stagecraft::tools {
namespace {

/// Refuses a missing folder, unless the run saves to it: its name may be a mistake.
void require_folder(const TrainOptions& options) {
  std::error_code ignored;
  if (options.save_dir != options.resume && !std::filesystem::exists(*options.resume, ignored)) {
    throw Error(Errc::UsageFile,
                fmt::format("--resume expects a folder of checkpoints, and '{}' is not there; to "
                            "begin one, name it in --save-dir as well",
                            *options.resume));
  }
}

}  // namespace

TrainOptions resumed(const TrainOptions& options, Console& console) {
  TrainOptions settled = options;
  if (options.resume) {
    require_folder(options);
    const CheckpointSearch search = find_checkpoint(*options.resume);
    for (const Error& broken : search.broken) {
      console.err << fmt::format("stagecraft: --resume passes over: {}\n", broken.message());
    }
    if (search.newest) {
      settled.load = search.newest->path;
      settled.resumed_at = search.newest->step;
      settled.load_weights.reset();  // only for the start of a run; this one continues
    } else {
      console.err << fmt::format(
          "stagecraft: --resume found no checkpoint in '{}': the run starts from nothing\n",
          *options.resume);
    }
    console.err << std::flush;
  }
  if (settled.load && settled.seed_from == SeedChoice::Checkpoint) {
    settled.seed = CheckpointReader(*settled.load).header().seed;
  }
  return settled;
}

bool has_nothing_left(const TrainOptions& options, Console& console) {
  if (!options.resumed_at || *options.resumed_at < options.steps || options.dry_run) {
    return false;
  }
  for (const auto& [option, path] : {std::pair{"--save", options.save},
                                     std::pair{"--save-weights", options.save_weights},
                                     std::pair{"--save-module", options.save_module}}) {
    std::error_code ignored;
    if (path && !std::filesystem::exists(*path, ignored)) {
      throw Error(Errc::UsageFile,
                  fmt::format("the run is complete: '{}' is at step {}, but {} '{}' is not there; "
                              "give a --steps larger than {} to go on and write it",
                              *options.load,
                              *options.resumed_at,
                              option,
                              *path,
                              *options.resumed_at));
    }
  }
  RunOutput output(console);
  const nlohmann::ordered_json object{{"event", "complete"},
                                      {"step", *options.resumed_at},
                                      {"steps", options.steps},
                                      {"file", *options.load}};
  make_progress(progress_form(options.json), output)
      ->report(fmt::format("nothing left to do: {} is at step {} of {}\n",
                           *options.load,
                           *options.resumed_at,
                           options.steps),
               object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return true;
}

}  // namespace stagecraft::tools
