#include "stagecraft/futures/transport/shared_memory/slot_arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

ArenaId drawn_id() {
  std::random_device source;
  const auto half = [&source] { return static_cast<std::uint64_t>(source()); };
  return ArenaId(half() << 32U | half());
}

std::int64_t whole_pages(std::int64_t bytes) {
  return (bytes + MemoryFile::kPage - 1) / MemoryFile::kPage * MemoryFile::kPage;
}

}  // namespace

std::shared_ptr<SlotArena> SlotArena::make(std::int64_t bytes) {
  return std::shared_ptr<SlotArena>(new SlotArena(MemoryFile::make(bytes)));
}

SlotArena::SlotArena(MemoryFile file) : id_(drawn_id()), file_(std::move(file)) {}

std::optional<SlotArena::Lent> SlotArena::put(const at::Tensor& values, Time now) {
  const auto bytes = static_cast<std::int64_t>(values.nbytes());
  std::uint32_t number = 0;
  SlotRef ref{.arena = id_};
  void* data = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    std::optional<std::uint32_t> found = free_slot(bytes);
    if (!found) {
      found = new_slot(bytes);
    }
    if (!found) {
      return std::nullopt;
    }
    number = *found;
    Slot& slot = slots_[number];
    if (!slot.has_memory && !take_memory(slot.offset, slot.mapping.bytes())) {
      return std::nullopt;
    }
    slot.has_memory = true;
    slot.used = now;
    file_.state(number).store(SlotState::Filled, std::memory_order_relaxed);
    ref.number = number;
    ref.offset = slot.offset;
    ref.capacity = slot.mapping.bytes();
    data = slot.mapping.data();
  }
  std::memcpy(data, values.const_data_ptr(), static_cast<std::size_t>(bytes));
  const auto give_back = [arena = shared_from_this(), number](void*) {
    SlotState expected = SlotState::Filled;
    if (arena->home_.is_here()) {  // a child of fork() has only a copy of the tensor
      arena->file_.state(number).compare_exchange_strong(expected, SlotState::Free);
    }
  };
  return Lent{at::from_blob(data, values.sizes(), give_back, values.options()), ref};
}

void SlotArena::mark_sent(const SlotRef& slot) {
  file_.state(slot.number).store(SlotState::Sent, std::memory_order_release);
}

/// Takes the smallest that fits, and none that is more than twice as large.
std::optional<std::uint32_t> SlotArena::free_slot(std::int64_t bytes) const {
  std::optional<std::uint32_t> best;
  std::int64_t smallest = 2 * whole_pages(bytes) + 1;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const std::int64_t capacity = slots_[i].mapping.bytes();
    if (capacity >= bytes && capacity < smallest &&
        file_.state(i).load(std::memory_order_acquire) == SlotState::Free) {
      best = i;
      smallest = capacity;
    }
  }
  return best;
}

std::optional<std::uint32_t> SlotArena::new_slot(std::int64_t bytes) {
  const std::int64_t capacity = whole_pages(bytes);
  if (slots_.size() == MemoryFile::kMostSlots || capacity > file_.size() - end_ ||
      !take_memory(end_, capacity)) {
    return std::nullopt;
  }
  try {
    slots_.push_back({.offset = end_,
                      .mapping = Mapping(file_.descriptor(), end_, capacity),
                      .has_memory = true,
                      .used = {}});
  } catch (const Error& error) {  // no room for it among the addresses of this process
    log(Level::Warning, "a tensor goes through a socket", {{"why", error.what()}});
    return std::nullopt;
  }
  end_ += capacity;
  return static_cast<std::uint32_t>(slots_.size() - 1);
}

bool SlotArena::take_memory(std::int64_t offset, std::int64_t bytes) {
  if (fallocate(file_.descriptor().number(), 0, offset, bytes) != 0) {
    if (!std::exchange(has_failed_, true)) {
      log(Level::Warning,
          "no more shared memory: tensors go through a socket",
          {{"wanted", bytes}, {"held", bytes_}, {"why", std::strerror(errno)}});
    }
    return false;
  }
  bytes_ += bytes;
  return true;
}

void SlotArena::trim(Time now) {
  const std::scoped_lock lock(mutex_);
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.has_memory && now - slot.used > kIdle &&
        file_.state(i).load(std::memory_order_acquire) == SlotState::Free &&
        fallocate(file_.descriptor().number(),
                  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  slot.offset,
                  slot.mapping.bytes()) == 0) {
      slot.has_memory = false;
      bytes_ -= slot.mapping.bytes();
    }
  }
}

std::int64_t SlotArena::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

std::size_t SlotArena::slots() const {
  const std::scoped_lock lock(mutex_);
  return slots_.size();
}

}  // namespace stagecraft
