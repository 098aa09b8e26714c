/// QuietProgress leaves out the reports of a training run, except notes, a failed comparison and
/// the end (`train --quiet`), in the form of another Progress.
#pragma once

#include <memory>

#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

[[nodiscard]] std::unique_ptr<Progress> make_quiet_progress(std::unique_ptr<Progress> form);

}  // namespace stagecraft::tools
