#include "stagecraft/bench/step/timed_allocator.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace stagecraft::bench {
namespace {

// An allocator set before may have more than the lowest priority.
constexpr std::uint8_t kPriority = std::numeric_limits<std::uint8_t>::max();

std::atomic<const AllocatorWatch*> watching{nullptr};

class TimedCall {
 public:
  TimedCall() : watch_(watching.load(std::memory_order_acquire)) {
    if (watch_ != nullptr) {
      watch_->begin();
    }
  }
  ~TimedCall() {
    if (watch_ != nullptr) {
      watch_->end();
    }
  }
  TimedCall(const TimedCall&) = delete;
  TimedCall& operator=(const TimedCall&) = delete;

 private:
  const AllocatorWatch* watch_;
};

/// The known deleters of the wrapped allocator. A deleter is a bare function, so each gets one of
/// our functions, which knows its number.
constexpr std::size_t kDeleters = 8;
std::array<std::atomic<c10::DeleterFnPtr>, kDeleters> deleters{};

template <std::size_t number>
void timed_delete(void* context) {
  const TimedCall call;
  deleters[number].load(std::memory_order_relaxed)(context);
}

template <std::size_t... numbers>
constexpr std::array<c10::DeleterFnPtr, kDeleters> all_timed_deletes(
    std::index_sequence<numbers...>) {
  return {&timed_delete<numbers>...};
}
constexpr auto kTimedDeletes = all_timed_deletes(std::make_index_sequence<kDeleters>());

/// Returns our function for `deleter`; `deleter` itself if there are too many, and then its frees
/// are not reported.
c10::DeleterFnPtr timed_deleter(c10::DeleterFnPtr deleter) {
  for (std::size_t i = 0; i < kDeleters; ++i) {
    c10::DeleterFnPtr known = nullptr;
    if (deleters[i].compare_exchange_strong(known, deleter) || known == deleter) {
      return kTimedDeletes[i];
    }
  }
  return deleter;
}

/// Handing lives forever, since tensors keep a pointer to their allocator.
class Handing : public c10::Allocator {
 public:
  c10::Allocator* in_place = nullptr;

  c10::DataPtr allocate(std::size_t bytes) override {
    const TimedCall call;
    c10::DataPtr memory = in_place->allocate(bytes);
    const c10::DeleterFnPtr deleter = memory.get_deleter();
    (void)memory.compare_exchange_deleter(deleter, timed_deleter(deleter));
    return memory;
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override {
    const c10::DeleterFnPtr deleter = in_place->raw_deleter();
    return deleter == nullptr ? nullptr : timed_deleter(deleter);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    in_place->copy_data(to, from, bytes);
  }
};

Handing& handing() {
  static auto* const one = new Handing;
  return *one;
}

}  // namespace

TimedAllocator::TimedAllocator(AllocatorWatch watch) {
  static AllocatorWatch current;
  current = watch;
  handing().in_place = c10::GetCPUAllocator();
  watching.store(&current, std::memory_order_release);
  c10::SetCPUAllocator(&handing(), kPriority);
}

TimedAllocator::~TimedAllocator() {
  c10::SetCPUAllocator(handing().in_place, kPriority);
  watching.store(nullptr, std::memory_order_release);
}

}  // namespace stagecraft::bench
