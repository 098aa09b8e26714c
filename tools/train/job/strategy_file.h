/// strategy_file writes the file of --strategy-out: the directives of a run, and a comment with the
/// options that say the rest of the pipeline, for which directives have no words.
#pragma once

#include <string>

#include "stagecraft/tools/train/job/job.h"

namespace stagecraft::tools {

/// Returns why no strategy can say the run's schedule: what a strategy expects, and what it has
/// instead; empty if one can.
[[nodiscard]] std::string unsayable(const TrainJob& job);

/// Returns the text. With --strategy and the options of the comment, the same model and data train
/// to the same bits.
/// Errors: UsageArgument for a schedule that no strategy can say.
[[nodiscard]] std::string strategy_file(const TrainJob& job);

}  // namespace stagecraft::tools
