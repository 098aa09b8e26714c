/// Reads the color of images of one color.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/images/made_images.h"

namespace stagecraft::tools {

inline constexpr tests::Rgba kRed{250, 10, 20, 255};

/// Returns the color of every pixel, which must be equal.
inline std::vector<int> color_of(const at::Tensor& image) {
  std::vector<int> color;
  for (std::int64_t c = 0; c < 3; ++c) {
    CHECK(image[c].min().item().toInt() == image[c].max().item().toInt());
    color.push_back(image[c].min().item().toInt());
  }
  return color;
}

}  // namespace stagecraft::tools
