#include "stagecraft/futures/store.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

[[noreturn]] void refuse(std::string_view wanted, SlotId slot, std::string_view found) {
  throw Error(Errc::PlanInvalid, fmt::format("cannot {} slot {}: {}", wanted, slot.value, found));
}

}  // namespace

Store::Store(std::int32_t slots) {
  SC_CHECK(slots >= 0, "a store cannot have " + std::to_string(slots) + " slots");
  slots_.resize(static_cast<std::size_t>(slots));
}

void Store::put(SlotId slot, at::Tensor tensor) {
  if (slot.value < 0 || slot.index() >= slots_.size()) {
    refuse("put into", slot, fmt::format("the plan has {} slots", slots_.size()));
  }
  if (holds(slot)) {
    refuse("put into", slot, "it is full; free or take its tensor first");
  }
  if (!tensor.defined()) {
    refuse("put into", slot, "the tensor is undefined");
  }
  account(bytes_of(tensor));
  slots_[slot.index()] = {std::move(tensor), Last::Filled};
}

const at::Tensor& Store::get(SlotId slot) const {
  return full(slot, "get").tensor;
}

at::Tensor Store::take(SlotId slot) {
  return empty(slot, Last::Taken, "take");
}

void Store::free(SlotId slot) {
  static_cast<void>(empty(slot, Last::Freed, "free"));
}

bool Store::holds(SlotId slot) const {
  return slot.value >= 0 && slot.index() < slots_.size() &&
         slots_[slot.index()].last == Last::Filled;
}

void Store::account(std::int64_t bytes) {
  bytes_ += bytes;
  peak_ = std::max(peak_, bytes_);
}

void Store::clear() {
  for (Slot& slot : slots_) {
    if (slot.last == Last::Filled) {
      slot = {at::Tensor(), Last::Cleared};
    }
  }
  bytes_ = 0;
}

const Store::Slot& Store::full(SlotId slot, std::string_view wanted) const {
  if (slot.value < 0 || slot.index() >= slots_.size()) {
    refuse(wanted, slot, fmt::format("the plan has {} slots", slots_.size()));
  }
  const Slot& found = slots_[slot.index()];
  switch (found.last) {
    case Last::Filled:
      break;
    case Last::NeverFilled:
      refuse(wanted, slot, "nothing was ever put into it");
    case Last::Taken:
      refuse(wanted, slot, "its tensor was taken and nothing was put there since");
    case Last::Freed:
      refuse(wanted, slot, "its tensor was freed and nothing was put there since");
    case Last::Cleared:
      refuse(wanted, slot, "the store was cleared and nothing was put there since");
  }
  return found;
}

at::Tensor Store::empty(SlotId slot, Last last, std::string_view wanted) {
  static_cast<void>(full(slot, wanted));
  Slot& found = slots_[slot.index()];
  account(-bytes_of(found.tensor));
  found.last = last;
  return std::exchange(found.tensor, at::Tensor());
}

}  // namespace stagecraft
