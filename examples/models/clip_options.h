/// ClipOptions says how large a CLIP is, and how it is cut.
///
/// It is separate from the model, which includes LibTorch's modules.
#pragma once

#include <cstdint>

namespace stagecraft::examples {

struct ClipOptions {
  std::int64_t image = 32;  ///< height and width
  std::int64_t patch = 8;   ///< height and width of a patch; divides image
  std::int64_t channels = 3;
  std::int64_t vocabulary = 256;
  std::int64_t sequence = 32;  ///< tokens per text, fixed
  std::int64_t image_layers = 2;
  std::int64_t text_layers = 2;
  std::int64_t dim = 128;   ///< of both towers
  std::int64_t heads = 4;   ///< divides dim
  std::int64_t ffn = 512;   ///< width of the feed-forwards
  std::int64_t embed = 64;  ///< width of the space in which images meet texts
  /// 1: everything in one stage; 2: the image tower, the text tower with the head; 3: image tower,
  /// text tower, head; more stages cut the towers, with at least one layer each.
  std::int64_t stages = 3;
  std::uint64_t seed = 0;
};

}  // namespace stagecraft::examples
