/// unet is the model `--model unet`: a diffusion U-Net that learns to predict the noise in images.
#pragma once

#include "stagecraft/tools/train/work/model_entry.h"

namespace stagecraft::tools {

[[nodiscard]] ModelEntry unet_entry();

}  // namespace stagecraft::tools
