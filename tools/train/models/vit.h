/// vit is the model `--model vit`: a vision transformer that classifies images.
#pragma once

#include "stagecraft/tools/train/work/model_entry.h"

namespace stagecraft::tools {

[[nodiscard]] ModelEntry vit_entry();

}  // namespace stagecraft::tools
