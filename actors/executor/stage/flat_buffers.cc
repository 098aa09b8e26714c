#include "stagecraft/actors/executor/stage/flat_buffers.h"

#include <iterator>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

namespace stagecraft {
namespace {

constexpr std::int64_t kAlignment = 64;  // bytes

}  // namespace

FlatMemory memory_of(const c10::Device& device) {
  return [device](std::int64_t elements, at::ScalarType dtype) {
    return at::zeros({elements}, at::TensorOptions(dtype).device(device));
  };
}

FlatMemory unset_memory_of(const c10::Device& device) {
  return [device](std::int64_t elements, at::ScalarType dtype) {
    return at::empty({elements}, at::TensorOptions(dtype).device(device));
  };
}

FlatMemory no_memory() {
  return [](std::int64_t elements, at::ScalarType dtype) {
    return at::from_blob(nullptr, {elements}, at::TensorOptions(dtype));
  };
}

FlatBuffers::FlatBuffers(FlatMemory memory, std::int32_t shards)
    : memory_(std::move(memory)), shards_(shards) {}

void FlatBuffers::reserve(const FlatKind& kind, std::int64_t elements) {
  buffers_[kind].elements.push_back(elements);
}

at::Tensor FlatBuffers::cut(const FlatKind& kind, at::IntArrayRef sizes) {
  Buffer& buffer = buffers_.at(kind);
  if (!buffer.memory.defined()) {
    const auto width = static_cast<std::int64_t>(c10::elementSize(kind.dtype));
    buffer.layout = shard_layout(buffer.elements, kAlignment / width, shards_);
    buffer.memory = memory_(buffer.layout.size(), kind.dtype);
  }
  const std::size_t next = buffer.cut++;
  return buffer.memory.narrow(0, buffer.layout.begins[next], buffer.elements[next]).view(sizes);
}

std::vector<at::Tensor> FlatBuffers::all() const {
  std::vector<at::Tensor> result;
  for (const auto& [kind, buffer] : buffers_) {
    result.push_back(buffer.memory);
  }
  return result;
}

std::size_t FlatBuffers::number_of(const FlatKind& kind) const {
  return static_cast<std::size_t>(std::distance(buffers_.begin(), buffers_.find(kind)));
}

ShardLayout::Part FlatBuffers::last_part(const FlatKind& kind, std::int32_t shard) const {
  const Buffer& buffer = buffers_.at(kind);
  return buffer.layout.part(buffer.cut - 1, shard);
}

FlatLease::FlatLease(at::Tensor flat, FlatMemory memory)
    : flat_(std::move(flat)), new_memory_(std::move(memory)) {}

void FlatLease::take() const {
  if (has_memory() || flat_.numel() == 0) {
    return;
  }
  memory_ = new_memory_(flat_.numel(), flat_.scalar_type());
  flat_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
      c10::DataPtr(memory_.mutable_data_ptr(), flat_.device()));
}

void FlatLease::give_back() const {
  flat_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
      c10::DataPtr(nullptr, flat_.device()));
  memory_ = at::Tensor();
}

}  // namespace stagecraft
