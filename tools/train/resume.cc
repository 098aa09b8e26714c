#include "stagecraft/tools/train/resume.h"

#include <filesystem>
#include <ostream>

#include <fmt/format.h>

#include "stagecraft/actors/checkpoint_file.h"
#include "stagecraft/actors/checkpoints.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

/// A folder that nothing is saved to is not there by mistake.
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
      settled.load_weights.reset();  // to begin with, and this run has begun
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

}  // namespace stagecraft::tools
