#include "stagecraft/tests/sim/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <c10/util/Exception.h>

#include "stagecraft/tests/sim/machine.h"

namespace stagecraft::sim {
namespace {

constexpr std::uintptr_t kOfDevice = std::uintptr_t{1} << 62;  // no address of a process
constexpr std::size_t kUnit = 512;

}  // namespace

void* on_host(const void* device_address) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(device_address) & ~kOfDevice);
}

void* on_device(void* host_address) {
  return host_address == nullptr
             ? nullptr
             : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(host_address) | kOfDevice);
}

Block& Memory::take(Stream& stream, std::size_t bytes, std::size_t limit) {
  const std::size_t size = (bytes + kUnit - 1) / kUnit * kUnit;
  const std::size_t left = limit - std::min(limit, static_cast<std::size_t>(in_use_));
  TORCH_CHECK_WITH(OutOfMemoryError,
                   size <= left,
                   "sim:",
                   stream.device,
                   " has ",
                   left,
                   " bytes left, and ",
                   size,
                   " are asked for");
  in_use_ += static_cast<std::int64_t>(size);
  peak_ = std::max(peak_, in_use_);
  std::vector<Block*>& cached = free_[{&stream, size}];
  if (!cached.empty()) {
    Block& block = *cached.back();
    cached.pop_back();
    return block;
  }
  auto made = std::make_unique<Block>();
  made->data = static_cast<char*>(std::aligned_alloc(kUnit, size));
  made->bytes = size;
  made->stream = &stream;
  std::memset(made->data, 0xff, size);
  return *blocks_.emplace(made->data, std::move(made)).first->second;
}

Block* Memory::find(void* host_address) {
  const auto found = blocks_.find(host_address);
  return found == blocks_.end() ? nullptr : found->second.get();
}

void Memory::end_use(const Block& block) {
  in_use_ -= static_cast<std::int64_t>(block.bytes);
}

std::vector<Block*> Memory::take_over() {
  std::vector<Block*> over;
  std::erase_if(pending_, [&](const Pending& pending) {
    const bool is_over =
        std::ranges::all_of(pending.marks, [](const auto& mark) { return mark->is_done; });
    if (is_over) {
      over.push_back(pending.block);
    }
    return is_over;
  });
  return over;
}

}  // namespace stagecraft::sim
