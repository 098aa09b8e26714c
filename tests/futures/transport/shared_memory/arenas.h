/// Makes both sides of shared memory in one process, without a data port.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>

#include "stagecraft/futures/transport/shared_memory/lent_memory.h"
#include "stagecraft/futures/transport/shared_memory/slot_arena.h"
#include "stagecraft/futures/transport/shared_memory/slot_view.h"

namespace stagecraft::testing {

inline constexpr std::int64_t kMebi = std::int64_t{1} << 20U;
inline constexpr std::int64_t kPage = MemoryFile::kPage;

/// Returns a file of so many bytes with these seals, which may break MY-1.
inline Descriptor sealed_file(std::int64_t bytes, int seals) {
  Descriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool made =
      ftruncate(file.number(), bytes) == 0 && fcntl(file.number(), F_ADD_SEALS, seals) == 0;
  return made ? std::move(file) : Descriptor();
}

/// Returns so many bytes, which count from `first` on. Uses no thread pool, which a child of fork()
/// would not have.
inline at::Tensor bytes_from(std::int64_t first, std::int64_t count) {
  at::Tensor tensor = at::empty({count}, at::kByte);
  auto* const bytes = tensor.mutable_data_ptr<std::uint8_t>();
  std::iota(bytes, bytes + count, static_cast<std::uint8_t>(first));
  return tensor;
}

inline Descriptor copy_of(const Descriptor& file) {
  return Descriptor(fcntl(file.number(), F_DUPFD_CLOEXEC, 0));
}

struct TwoSides {
  explicit TwoSides(std::int64_t bytes = kMebi) : arena(SlotArena::make(bytes)) {}

  /// Brings the values to the other side.
  at::Tensor pass(const at::Tensor& values) {
    const auto sent = arena->put(values);
    arena->mark_sent(sent->slot);
    return take(sent->slot, values);
  }
  at::Tensor take(const SlotRef& slot, const at::Tensor& like) const {
    return view->take(
        slot, like.sizes().vec(), like.scalar_type(), static_cast<std::int64_t>(like.nbytes()));
  }

  std::shared_ptr<SlotArena> arena;
  LentMemory lent{kMebi};
  std::shared_ptr<SlotView> view = std::make_shared<SlotView>(
      MemoryFile(copy_of(arena->file().descriptor())), MemoryFile(copy_of(*lent.file())));
};

}  // namespace stagecraft::testing
