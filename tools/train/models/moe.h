/// moe is the model `--model moe`: a mixture of experts that learns the bytes of a text.
#pragma once

#include "stagecraft/tools/train/work/model_entry.h"

namespace stagecraft::tools {

[[nodiscard]] ModelEntry moe_entry();

}  // namespace stagecraft::tools
