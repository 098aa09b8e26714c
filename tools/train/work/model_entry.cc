#include "stagecraft/tools/train/work/model_entry.h"

#include <fmt/format.h>

namespace stagecraft::tools {

std::string wrong_heads(const ModelSizes& sizes) {
  const std::int64_t dim = sizes.whole("dim"), heads = sizes.whole("heads");
  return dim % heads == 0
             ? std::string()
             : fmt::format("--heads expects a divisor of --dim {}, found {}", dim, heads);
}

std::string wrong_patches_or_heads(const ModelSizes& sizes) {
  const std::int64_t image = sizes.whole("image"), patch = sizes.whole("patch");
  return image % patch == 0
             ? wrong_heads(sizes)
             : fmt::format("--patch expects a divisor of --image {}, found {}", image, patch);
}

std::string wrong_heads_of_rotated_pairs(const ModelSizes& sizes) {
  const std::int64_t width = sizes.whole("dim") / sizes.whole("heads");
  const std::string wrong = wrong_heads(sizes);
  return wrong.empty() && width % 2 != 0
             ? fmt::format(
                   "--dim / --heads expects an even number (the rotary embedding turns "
                   "pairs), found {}",
                   width)
             : wrong;
}

}  // namespace stagecraft::tools
