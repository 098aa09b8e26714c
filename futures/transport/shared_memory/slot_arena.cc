#include "stagecraft/futures/transport/shared_memory/slot_arena.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

ArenaId drawn_id() {
  std::random_device source;
  const auto half = [&source] { return static_cast<std::uint64_t>(source()); };
  return ArenaId(half() << 32U | half());
}

}  // namespace

std::shared_ptr<SlotArena> SlotArena::make(std::int64_t bytes, Sizes sizes) {
  // Slots without memory keep their places, so there are more places than memory.
  constexpr std::int64_t kPlaces = 4;
  const std::int64_t places = std::min(kPlaces * bytes, MemoryFile::kLargest);
  return std::shared_ptr<SlotArena>(new SlotArena(MemoryFile::make(places), bytes, sizes));
}

SlotArena::SlotArena(MemoryFile file, std::int64_t limit, Sizes sizes)
    : id_(drawn_id()), file_(std::move(file)), limit_(limit), sizes_(sizes) {}

std::optional<SlotArena::InSlot> SlotArena::empty(at::IntArrayRef sizes, at::ScalarType dtype) {
  const auto bytes =
      c10::multiply_integers(sizes) * static_cast<std::int64_t>(c10::elementSize(dtype));
  std::uint32_t number = 0;
  Slot slot;
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
    slots_[number].free_since.reset();
    ++slots_[number].use;
    slot = slots_[number];
    file_.state(number).store(SlotState::Filled, std::memory_order_relaxed);
  }
  if (!slot.has_memory && !take_memory(number)) {
    give_back(number, slot.use);
    return std::nullopt;
  }
  at::Tensor tensor = at::from_blob(
      file_.at(slot.offset),
      sizes,
      [arena = shared_from_this(), number, use = slot.use](void*) {
        arena->give_back(number, use);
      },
      at::TensorOptions(dtype));
  return InSlot{std::move(tensor),
                {.arena = id_, .number = number, .offset = slot.offset, .capacity = slot.capacity}};
}

std::optional<SlotArena::InSlot> SlotArena::put(const at::Tensor& values) {
  std::optional<InSlot> in_slot = empty(values.sizes(), values.scalar_type());
  if (in_slot) {
    std::memcpy(in_slot->tensor.mutable_data_ptr(), values.const_data_ptr(), values.nbytes());
  }
  return in_slot;
}

void SlotArena::mark_sent(const SlotRef& slot) {
  file_.state(slot.number).store(SlotState::Sent, std::memory_order_release);
}

void SlotArena::give_back(std::uint32_t number, std::uint64_t use) {
  if (!home_.is_here()) {
    return;  // a child of fork() has a copy of the tensor; the slot is its parent's
  }
  const std::scoped_lock lock(mutex_);
  SlotState expected = SlotState::Filled;
  if (slots_[number].use == use) {  // keeps SX-3
    file_.state(number).compare_exchange_strong(expected, SlotState::Free);
  }
}

/// Takes the smallest that fits, and none that is more than twice as large, or larger than exact.
std::optional<std::uint32_t> SlotArena::free_slot(std::int64_t bytes) const {
  std::optional<std::uint32_t> best;
  std::int64_t smallest =
      (sizes_ == Sizes::Exact ? largest_capacity(bytes) / 2 : largest_capacity(bytes)) + 1;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const std::int64_t capacity = slots_[i].capacity;
    if (capacity >= bytes && capacity < smallest &&
        file_.state(i).load(std::memory_order_acquire) == SlotState::Free) {
      best = i;
      smallest = capacity;
    }
  }
  return best;
}

/// Rounds similar sizes up, by a quarter at most, so that their tensors share slots.
std::optional<std::uint32_t> SlotArena::new_slot(std::int64_t bytes) {
  const auto pages =
      static_cast<std::uint64_t>((bytes + MemoryFile::kPage - 1) / MemoryFile::kPage);
  const std::uint64_t step =
      sizes_ == Sizes::Exact ? 1 : std::max<std::uint64_t>(1, std::bit_floor(pages) / 4);
  const auto capacity =
      static_cast<std::int64_t>((pages + step - 1) / step * step) * MemoryFile::kPage;
  if (slots_.size() == MemoryFile::kMostSlots) {
    log_lack(bytes, "all slots are in use");
    return std::nullopt;
  }
  if (capacity > file_.size() - end_ || capacity > limit_ - bytes_) {
    log_lack(bytes, "the limit for this peer is reached");
    return std::nullopt;
  }
  slots_.push_back({.offset = end_, .capacity = capacity});
  end_ += capacity;
  return static_cast<std::uint32_t>(slots_.size() - 1);
}

bool SlotArena::take_memory(std::uint32_t number) {
  Slot slot;
  {
    const std::scoped_lock lock(mutex_);
    slot = slots_[number];
    if (slot.capacity > limit_ - bytes_) {
      log_lack(slot.capacity, "the limit for this peer is reached");
      return false;
    }
    bytes_ += slot.capacity;
  }
  const bool taken = file_.take_memory(slot.offset, slot.capacity);
  const std::string why = taken ? "" : std::strerror(errno);
  const std::scoped_lock lock(mutex_);
  if (!taken) {
    bytes_ -= slot.capacity;
    log_lack(slot.capacity, why);
    return false;
  }
  slots_[number].has_memory = true;
  return true;
}

void SlotArena::log_lack(std::int64_t bytes, std::string_view why) {
  if (!std::exchange(has_logged_, true)) {
    log(Level::Warning,
        "no shared memory left: tensors are copied, or go through a socket",
        {{"wanted", bytes}, {"held", bytes_}, {"limit", limit_}, {"why", why}});
  }
}

void SlotArena::trim(Time now) {
  std::vector<std::pair<std::uint32_t, Slot>> idle;
  {
    const std::scoped_lock lock(mutex_);
    std::int64_t trimmed = 0;
    for (std::uint32_t i = 0; i < slots_.size() && trimmed < kTrimmed; ++i) {
      Slot& slot = slots_[i];
      if (!slot.has_memory || file_.state(i).load(std::memory_order_acquire) != SlotState::Free) {
        continue;
      }
      if (!slot.free_since) {
        slot.free_since = now;
      }
      if (now - *slot.free_since > kIdle) {
        file_.state(i).store(SlotState::Filled, std::memory_order_relaxed);
        ++slot.use;  // keeps SX-3
        slot.has_memory = false;
        bytes_ -= slot.capacity;
        trimmed += slot.capacity;
        idle.emplace_back(i, slot);
      }
    }
  }
  for (const auto& [number, slot] : idle) {
    file_.give_memory_back(slot.offset, slot.capacity);
    give_back(number, slot.use);
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
