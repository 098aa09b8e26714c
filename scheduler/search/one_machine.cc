#include "stagecraft/scheduler/search/one_machine.h"

#include <algorithm>
#include <limits>

namespace stagecraft {
namespace {

bool shorter_tail(const MachineJob& a, const MachineJob& b) {
  return a.tail < b.tail;
}

}  // namespace

Ticks one_machine_bound(std::vector<MachineJob>& jobs) {
  std::ranges::sort(jobs, {}, &MachineJob::head);
  // Arrived jobs are a heap before those that have not arrived: [0, ready) of `jobs`.
  std::size_t ready = 0;
  std::size_t next = 0;
  Ticks now = 0;
  Ticks bound = 0;
  const auto heap = [&] { return jobs.begin() + static_cast<std::ptrdiff_t>(ready); };
  while (ready > 0 || next < jobs.size()) {
    if (ready == 0) {
      now = std::max(now, jobs[next].head);
    }
    for (; next < jobs.size() && jobs[next].head <= now; ++next) {
      jobs[ready++] = jobs[next];
      std::push_heap(jobs.begin(), heap(), shorter_tail);
    }
    const Ticks arrival = next < jobs.size() ? jobs[next].head : std::numeric_limits<Ticks>::max();
    MachineJob& first = jobs.front();
    const Ticks run = std::min(first.time, arrival - now);
    now += run;
    first.time -= run;
    if (first.time == 0) {
      bound = std::max(bound, now + first.tail);
      std::pop_heap(jobs.begin(), heap(), shorter_tail);
      --ready;
    }
  }
  return bound;
}

}  // namespace stagecraft
