#include "stagecraft/futures/transport/shared_memory/slot_view.h"

#include <utility>

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

template <class... Parts>
Error wrong_slot(fmt::format_string<Parts...> format, Parts&&... parts) {
  return Error(Errc::TransportRefused,
               "shared memory: " + fmt::format(format, std::forward<Parts>(parts)...));
}

}  // namespace

SlotView::SlotView(MemoryFile file, std::optional<MemoryFile> lent)
    : file_(std::move(file)), lent_(std::move(lent)) {
  file_.close_file();
  if (lent_) {
    lent_->close_file();
  }
}

at::Tensor SlotView::take(const SlotRef& slot,
                          const std::vector<std::int64_t>& sizes,
                          at::ScalarType dtype,
                          std::int64_t bytes) {
  if (slot.number == kLent) {
    return lent_tensor(slot, sizes, dtype, bytes);
  }
  check(slot, bytes);
  remember(slot);
  at::Tensor tensor = at::from_blob(
      file_.at(slot.offset),
      sizes,
      [self = shared_from_this(), number = slot.number](void*) { self->give_back(number); },
      at::TensorOptions().dtype(dtype));
  used_[slot.number] = true;
  return tensor;
}

at::Tensor SlotView::lent_tensor(const SlotRef& range,
                                 const std::vector<std::int64_t>& sizes,
                                 at::ScalarType dtype,
                                 std::int64_t bytes) {
  if (!lent_) {
    throw wrong_slot("a tensor is lent, and no memory was offered for that");
  }
  if (range.offset < MemoryFile::kFirstSlot || range.capacity != bytes ||
      range.offset % static_cast<std::int64_t>(c10::elementSize(dtype)) != 0 ||
      range.capacity > lent_->size() - range.offset) {
    throw wrong_slot("{} bytes at byte {} are not a tensor of {} in {} bytes of lent memory",
                     range.capacity,
                     range.offset,
                     bytes,
                     lent_->size());
  }
  return at::from_blob(
      lent_->at(range.offset),
      sizes,
      [self = shared_from_this()](void*) {},
      at::TensorOptions().dtype(dtype));
}

void SlotView::check(const SlotRef& slot, std::int64_t bytes) const {
  if (slot.number >= MemoryFile::kMostSlots) {
    throw wrong_slot("there is no slot {}: an arena has {}", slot.number, MemoryFile::kMostSlots);
  }
  if (slot.offset < MemoryFile::kFirstSlot || slot.offset % MemoryFile::kPage != 0 ||
      slot.capacity <= 0 || slot.capacity > file_.size() - slot.offset) {
    throw wrong_slot("{} bytes at byte {} are not a slot of {} bytes of memory",
                     slot.capacity,
                     slot.offset,
                     file_.size());
  }
  if (slot.capacity > largest_capacity(bytes)) {
    throw wrong_slot("a slot of {} bytes is too large for a tensor of {}", slot.capacity, bytes);
  }
  if (bytes > slot.capacity) {
    throw wrong_slot("a tensor of {} bytes does not fit a slot of {}", bytes, slot.capacity);
  }
  if (used_[slot.number]) {
    throw wrong_slot("slot {} was sent again before it was given back", slot.number);
  }
  if (file_.state(slot.number).load(std::memory_order_acquire) != SlotState::Sent) {
    throw wrong_slot("slot {} was not sent", slot.number);
  }
}

void SlotView::remember(const SlotRef& slot) {
  if (slot.number >= known_.size()) {
    known_.resize(slot.number + 1);
  }
  SlotRef& known = known_[slot.number];
  if (known.capacity == 0) {
    known = slot;
    file_.see_memory(slot.offset, slot.capacity);
  } else if (known != slot) {
    throw wrong_slot("slot {} was at byte {} before, and is at byte {} now",
                     slot.number,
                     known.offset,
                     slot.offset);
  }
}

void SlotView::give_back(std::uint32_t number) {
  if (home_.is_here()) {  // a child of fork() has a copy of the tensor; the slot is its parent's
    used_[number] = false;
    file_.state(number).store(SlotState::Free, std::memory_order_release);
  }
}

}  // namespace stagecraft
