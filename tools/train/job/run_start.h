/// RunStart is the start of a run: a checkpoint, or its seed and perhaps other weights.
///
/// It is found before anything else uses the options, and never changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

struct RunStart {
  std::optional<std::string> checkpoint;   ///< of --load, or the newest of --resume
  std::optional<std::int64_t> resumed_at;  ///< the step of the checkpoint that --resume found
  std::optional<std::string> weights;      ///< of --load-weights, at the first start only
  std::uint64_t seed = 0;
  std::string run = {};  ///< with --attach, its name (run_name.h)
};

/// Finds the start. Reports on standard error the broken checkpoints of --resume, and a folder
/// without any.
/// Errors: UsageFile for a folder or a checkpoint that cannot be read, and for a run from the
///         beginning into a folder of --save-dir that has checkpoints; CheckpointFormat for a
///         checkpoint of --load that is not whole, if its seed is needed.
[[nodiscard]] RunStart find_start(const TrainOptions& options, Console& console);

/// Returns whether the checkpoint that --resume found is at or past the last step, and the files of
/// the run's end are there, for the last step written after it. Reports it then, so a job that was
/// queued again ends well.
/// `steps`: at which the run ends; none if that is not known yet.
/// Errors: UsageFile if the checkpoint is past the last step and such a file is missing;
///         CheckpointMismatch for a checkpoint of another optimizer or seed.
[[nodiscard]] bool has_nothing_left(const TrainOptions& options,
                                    const RunStart& start,
                                    const std::optional<std::int64_t>& steps,
                                    Console& console);

}  // namespace stagecraft::tools
