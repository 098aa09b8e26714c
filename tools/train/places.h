/// The files a run names, looked at before it begins: a run of hours must not end with a place that
/// was never there, nor take from its user what it was to keep.
#pragma once

#include "stagecraft/tools/train/options.h"

namespace stagecraft::tools {

/// Tries whether --save, --save-dir, --save-weights, --save-module, --metrics, --cut-out,
/// --costs-out and --trace can be written, and leaves everything as it was.
/// Errors: UsageFile, naming the option: for a place that cannot be written, and for one that
/// another option names as well, or standard output goes to, where one of the two would be lost.
void check_places(const TrainOptions& options);

}  // namespace stagecraft::tools
