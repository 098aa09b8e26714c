/// places checks the files that a run names before it begins: a run of hours must not fail at its
/// end for a missing folder, or overwrite a file of its user.
#pragma once

#include "stagecraft/tools/train/job/run_start.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Tests whether --save, --save-dir, --save-weights, --save-module, --metrics, --cut-out,
/// --strategy-out, --costs-out and --trace can be written, and changes nothing.
/// Errors: UsageFile, naming the option, for a path that cannot be written, and for a path that
///         another option or standard output uses too, if one of the two would be lost.
void check_places(const TrainOptions& options, const RunStart& start);

}  // namespace stagecraft::tools
