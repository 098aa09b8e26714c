#include "stagecraft/actors/executor/mirror/packed_state.h"

#include <cstddef>
#include <cstring>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

std::int64_t packed_bytes(const std::vector<NamedTensor>& state) {
  std::int64_t bytes = 0;
  for (const NamedTensor& named : state) {
    bytes += static_cast<std::int64_t>(named.tensor.nbytes());
  }
  return bytes;
}

void pack(const std::vector<NamedTensor>& state, const at::Tensor& packed) {
  const at::NoGradGuard no_grad;
  auto* out = static_cast<std::byte*>(packed.mutable_data_ptr());
  for (const NamedTensor& named : state) {
    const at::Tensor in_order = named.tensor.contiguous().cpu();
    if (in_order.nbytes() > 0) {
      std::memcpy(out, in_order.const_data_ptr(), in_order.nbytes());
    }
    out += in_order.nbytes();
  }
}

void unpack(const at::Tensor& packed, const std::vector<NamedTensor>& state) {
  if (!packed.defined() || packed.scalar_type() != at::kByte ||
      packed.numel() != packed_bytes(state)) {
    throw Error(
        Errc::Internal,
        fmt::format("a copy of this rank's state has {} bytes, not {}: it belongs to another state",
                    packed.defined() ? packed.nbytes() : 0,
                    packed_bytes(state)));
  }
  const at::NoGradGuard no_grad;
  const at::Tensor bytes = packed.contiguous();
  const auto* from = static_cast<const std::byte*>(bytes.const_data_ptr());
  for (const NamedTensor& named : state) {
    const at::Tensor living = named.tensor.detach();
    const at::Tensor in_order =
        living.is_contiguous() && living.is_cpu()
            ? living
            : at::empty_like(
                  living, living.options().device(at::kCPU), at::MemoryFormat::Contiguous);
    if (in_order.nbytes() > 0) {
      std::memcpy(in_order.mutable_data_ptr(), from, in_order.nbytes());
    }
    if (!in_order.is_same(living)) {
      living.copy_(in_order);
    }
    from += in_order.nbytes();
  }
}

}  // namespace stagecraft
