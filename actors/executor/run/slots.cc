#include "stagecraft/actors/executor/run/slots.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

[[noreturn]] void refuse(std::string_view wanted, SlotId slot, std::string_view found) {
  throw Error(Errc::PlanInvalid, fmt::format("cannot {} slot {}: {}", wanted, slot.value, found));
}

}  // namespace

Slots::Slots(std::int32_t count) {
  SC_CHECK(count >= 0, "a plan cannot have " + std::to_string(count) + " slots");
  slots_.resize(static_cast<std::size_t>(count));
}

void Slots::put(SlotId slot, at::Tensor tensor) {
  if (!tensor.defined()) {
    refuse("put into", slot, "the tensor is undefined");
  }
  const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
  fill(slot, std::move(tensor), bytes);
}

void Slots::put(SlotId slot, SavedStage saved, std::int64_t bytes) {
  fill(slot, std::move(saved), bytes);
  peak_in_flight_ = std::max(peak_in_flight_, ++in_flight_);
}

void Slots::put(SlotId slot, std::vector<at::Tensor> parameter_gradients) {
  fill(slot, std::move(parameter_gradients), 0);
}

void Slots::fill(SlotId slot, Content content, std::int64_t bytes) {
  if (slot.value < 0 || slot.index() >= slots_.size()) {
    refuse("put into", slot, fmt::format("the plan has {} slots", slots_.size()));
  }
  Slot& found = slots_[slot.index()];
  if (found.last == Last::Filled) {
    refuse("put into", slot, "it is full; free it first");
  }
  found = {std::move(content), bytes, Last::Filled};
  bytes_ += bytes;
  peak_ = std::max(peak_, bytes_);
}

void Slots::free(SlotId slot) {
  static_cast<void>(full(slot, "free"));
  Slot& found = slots_[slot.index()];
  bytes_ -= found.bytes;
  in_flight_ -= std::holds_alternative<SavedStage>(found.content) ? 1 : 0;
  found = {std::monostate(), 0, Last::Freed};
}

void Slots::now_keeps(SlotId slot, std::int64_t bytes) {
  static_cast<void>(get<SavedStage>(slot, "what a forward has saved"));
  Slot& found = slots_[slot.index()];
  bytes_ += bytes - found.bytes;
  found.bytes = bytes;
  peak_ = std::max(peak_, bytes_);
}

const at::Tensor& Slots::tensor(SlotId slot) const {
  return get<at::Tensor>(slot, "a tensor");
}

SavedStage& Slots::saved(SlotId slot) {
  static_cast<void>(get<SavedStage>(slot, "what a forward has saved"));
  return std::get<SavedStage>(slots_[slot.index()].content);
}

const std::vector<at::Tensor>& Slots::parameter_gradients(SlotId slot) const {
  return get<std::vector<at::Tensor>>(slot, "gradients of parameters");
}

template <class T>
const T& Slots::get(SlotId slot, std::string_view kind) const {
  const T* found = std::get_if<T>(&full(slot, "get").content);
  if (found == nullptr) {
    refuse("get", slot, fmt::format("it does not hold {}", kind));
  }
  return *found;
}

void Slots::clear() {
  for (Slot& slot : slots_) {
    if (slot.last == Last::Filled) {
      slot = {std::monostate(), 0, Last::Cleared};
    }
  }
  bytes_ = 0;
  in_flight_ = 0;
}

const Slots::Slot& Slots::full(SlotId slot, std::string_view wanted) const {
  if (slot.value < 0 || slot.index() >= slots_.size()) {
    refuse(wanted, slot, fmt::format("the plan has {} slots", slots_.size()));
  }
  const Slot& found = slots_[slot.index()];
  switch (found.last) {
    case Last::Filled:
      break;
    case Last::NeverFilled:
      refuse(wanted, slot, "nothing was ever put into it");
    case Last::Freed:
      refuse(wanted, slot, "it was freed and nothing was put there since");
    case Last::Cleared:
      refuse(wanted, slot, "all were cleared and nothing was put there since");
  }
  return found;
}

}  // namespace stagecraft
