/// error_for_user puts an error of the runtime in the words of a user of `train`: the runtime names
/// fields and calls of a program; the command has options for them, or nothing.
#pragma once

#include "stagecraft/base/error.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

[[nodiscard]] Error error_for_user(const Error& error, const TrainOptions& options);

}  // namespace stagecraft::tools
