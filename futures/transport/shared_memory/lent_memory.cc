#include "stagecraft/futures/transport/shared_memory/lent_memory.h"

#include <cstddef>
#include <functional>

#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {

LentMemory::LentMemory(std::int64_t bytes) {
  if (bytes == 0) {
    return;
  }
  try {
    ranges_ = SlotArena::make(bytes, SlotArena::Sizes::Exact);
  } catch (const Error& error) {
    log(Level::Warning, "processes copy what they sum and gather", {{"why", error.what()}});
  }
}

at::Tensor LentMemory::zeros(std::int64_t elements, at::ScalarType dtype) const {
  if (ranges_ != nullptr && elements > 0) {
    if (const auto range = ranges_->empty({elements}, dtype)) {
      return range->tensor.zero_();
    }
  }
  return at::zeros({elements}, dtype);
}

void LentMemory::trim(SlotArena::Time now) const {
  if (ranges_ != nullptr) {
    ranges_->trim(now);
  }
}

std::optional<SlotRef> LentMemory::range_of(const at::Tensor& tensor) const {
  if (ranges_ == nullptr || tensor.numel() == 0) {
    return std::nullopt;
  }
  const MemoryFile& file = ranges_->file();
  const auto* const begin = static_cast<const std::byte*>(file.at(0));
  const auto* const data = static_cast<const std::byte*>(tensor.const_data_ptr());
  if (std::less<>{}(data, begin) || !std::less<>{}(data, begin + file.size())) {
    return std::nullopt;
  }
  return SlotRef{.arena = {},
                 .number = kLent,
                 .offset = data - begin,
                 .capacity = static_cast<std::int64_t>(tensor.nbytes())};
}

}  // namespace stagecraft
