#include "stagecraft/actors/executor/device/timeline.h"

#include <algorithm>
#include <utility>

namespace stagecraft {

void TimelineRecorder::begin_step() {
  times_.assign(instructions_, {});
  arrivals_ = std::make_shared<Arrivals>(instructions_);
  expected_.clear();
}

void TimelineRecorder::expect(std::size_t position, const Future<at::Tensor>& receive) {
  expected_.push_back(position);
  if (!receive.valid()) {
    return;  // it is read when it is taken
  }
  receive.on_ready([arrivals = arrivals_, position] {  // keeps TL-2: the callback owns the arrivals
    (*arrivals)[position].store(std::chrono::steady_clock::now().time_since_epoch().count(),
                                std::memory_order_relaxed);
  });
}

std::vector<InstructionTime> TimelineRecorder::take() {
  for (InstructionTime& time : times_) {
    time.start = device_.time_of({time.start});
    time.end = device_.time_of({time.end});
  }
  for (const std::size_t position : expected_) {
    // A receive can be taken before the thread that completed it notes the time.
    const std::int64_t noted = (*arrivals_)[position].load(std::memory_order_relaxed);
    const std::int64_t end = times_[position].end;
    times_[position].arrived = noted == 0 ? end : std::min(noted, end);
  }
  return std::exchange(times_, {});
}

}  // namespace stagecraft
