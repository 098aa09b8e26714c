/// clip is the model `--model clip`: an image tower and a text tower that learn which images and
/// captions belong together.
#pragma once

#include "stagecraft/tools/train/work/model_entry.h"

namespace stagecraft::tools {

[[nodiscard]] ModelEntry clip_entry();

}  // namespace stagecraft::tools
