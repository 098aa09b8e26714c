/// byte_tensor puts bytes and texts into a tensor, the form in which a transport carries them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

namespace stagecraft {

/// Returns a copy of the bytes. Shape: [bytes], uint8.
[[nodiscard]] inline at::Tensor byte_tensor(std::string_view bytes) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace stagecraft
