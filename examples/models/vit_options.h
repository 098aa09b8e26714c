/// VitOptions says how large a ViT is, and how it is cut.
///
/// It is separate from the model, which includes LibTorch's modules.
#pragma once

#include <cstdint>

namespace stagecraft::examples {

struct VitOptions {
  std::int64_t image = 32;  ///< height and width
  std::int64_t patch = 8;   ///< height and width of a patch; divides image
  std::int64_t channels = 3;
  std::int64_t classes = 10;
  std::int64_t layers = 4;
  std::int64_t dim = 128;
  std::int64_t heads = 4;   ///< divides dim
  std::int64_t ffn = 512;   ///< width of the feed-forward
  double dropout = 0.0;     ///< from 0 to below 1
  std::int64_t stages = 4;  ///< at most `layers`
  std::uint64_t seed = 0;
};

}  // namespace stagecraft::examples
