#include "stagecraft/futures/wait_board.h"

#include <algorithm>

#include "stagecraft/base/process/process_end.h"

namespace stagecraft {

bool WaitBoard::wait(const std::vector<Arrival>& arrivals, Deadline deadline) {
  const auto ready = [](const Arrival& a) { return a.second.ready(); };
  if (std::ranges::all_of(arrivals, ready)) {
    return true;  // the usual case; no other thread could ask in between
  }
  const process_end::Elsewhere elsewhere;
  {
    const std::scoped_lock lock(mutex_);
    waiting_ = arrivals;
  }
  const bool all = std::ranges::all_of(
      arrivals, [&](const Arrival& a) { return a.second.wait_until(deadline, *clock_); });
  std::vector<Arrival> over;
  const std::scoped_lock lock(mutex_);
  over.swap(waiting_);
  return all;
}

std::vector<Rank> WaitBoard::missing() const {
  std::vector<Rank> ranks;
  const std::scoped_lock lock(mutex_);
  for (const auto& [rank, future] : waiting_) {
    if (!future.ready()) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace stagecraft
