/// llama is the model `--model llama`: a Llama that learns the bytes of a text.
#pragma once

#include "stagecraft/tools/train/work/model_entry.h"

namespace stagecraft::tools {

[[nodiscard]] ModelEntry llama_entry();

}  // namespace stagecraft::tools
