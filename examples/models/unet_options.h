/// UnetOptions says how large a diffusion U-Net is, and how it is cut.
///
/// It is separate from the model, which includes LibTorch's modules.
#pragma once

#include <cstdint>

namespace stagecraft::examples {

struct UnetOptions {
  std::int64_t image = 32;  ///< height and width; halved `levels` - 1 times without remainder
  std::int64_t channels = 3;
  std::int64_t width =
      32;  ///< channels of the first level, twice as many each level on; 8 divides it
  std::int64_t levels = 3;
  std::int64_t blocks = 1;  ///< residual blocks of a level, on the way down and on the way up
  std::int64_t heads = 4;   ///< of the attention at the lowest level; divides its channels
  std::int64_t stages = 4;  ///< at most 2 * levels * blocks + 1: a stage holds a residual block
  std::uint64_t seed = 0;
};

}  // namespace stagecraft::examples
