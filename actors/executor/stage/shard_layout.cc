#include "stagecraft/actors/executor/stage/shard_layout.h"

#include <algorithm>

#include "stagecraft/actors/executor/stage/gradient_norm.h"

namespace stagecraft {
namespace {

std::int64_t rounded_up(std::int64_t number, std::int64_t step) {
  return (number + step - 1) / step * step;
}

/// Sets begins and ends for shards of this size. Returns whether all tensors fit.
bool place(ShardLayout& layout, const std::vector<std::int64_t>& elements, std::int64_t alignment) {
  layout.begins.clear();
  layout.ends.clear();
  std::int64_t used = 0;
  for (const std::int64_t count : elements) {
    std::int64_t begin = rounded_up(used, alignment);
    const auto is_divided = [&] {
      return count > 0 && begin / layout.shard != (begin + count - 1) / layout.shard;
    };
    if (layout.shards > 1 && is_divided()) {
      begin = rounded_up(begin, kNormBlock);  // keeps SD-1, as shards are whole blocks
    }
    used = begin + count;
    layout.begins.push_back(begin);
    layout.ends.push_back(used);
  }
  return used <= layout.size();
}

}  // namespace

ShardLayout::Part ShardLayout::part(std::size_t tensor, std::int32_t of_shard) const {
  const std::int64_t first = of_shard * shard;
  const std::int64_t begin = std::clamp(begins[tensor], first, first + shard);
  const std::int64_t end = std::clamp(ends[tensor], first, first + shard);
  return {begin - begins[tensor], end - begins[tensor], begin - first};
}

ShardLayout shard_layout(const std::vector<std::int64_t>& elements,
                         std::int64_t alignment,
                         std::int32_t shards) {
  std::int64_t least = 0;
  for (const std::int64_t count : elements) {
    least += rounded_up(count, alignment);
  }
  const std::int64_t step = shards > 1 ? kNormBlock : alignment;
  ShardLayout layout{.begins = {},
                     .ends = {},
                     .shard = std::max(step, rounded_up((least + shards - 1) / shards, step)),
                     .shards = shards};
  while (!place(layout, elements, alignment)) {
    layout.shard += step;
  }
  return layout;
}

}  // namespace stagecraft
