/// An error of the runtime in the words of a user of `train`: the runtime names fields and calls,
/// which a user of the command has as options, or not at all.
#pragma once

#include "stagecraft/base/error.h"
#include "stagecraft/tools/train/options.h"

namespace stagecraft::tools {

[[nodiscard]] Error told_error(const Error& error, const TrainOptions& options);

}  // namespace stagecraft::tools
