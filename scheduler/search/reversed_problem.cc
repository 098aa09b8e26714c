#include "stagecraft/scheduler/search/reversed_problem.h"

#include <algorithm>

#include "stagecraft/scheduler/search/cap_rules.h"

namespace stagecraft {

SearchProblem reversed_problem(const SearchProblem& problem) {
  SearchProblem back{
      .devices = problem.devices, .microbatches = problem.microbatches, .cap = problem.cap};
  const int last = static_cast<int>(problem.lanes.size()) - 1;
  back.lanes.resize(problem.lanes.size());
  back.of_device.resize(problem.of_device.size());
  for (int l = 0; l <= last; ++l) {
    const Lane& lane = problem.lanes[static_cast<std::size_t>(l)];
    Lane& made = back.lanes[static_cast<std::size_t>(last - l)];
    made.device = lane.device;
    made.time = lane.time;
    made.takes = lane.releases;
    made.releases = lane.takes;
    for (const Lane::Feed& feed : lane.feeds) {
      back.lanes[static_cast<std::size_t>(last - feed.lane)].feeds.push_back(
          {last - l, feed.transfer});
    }
    if (lane.takes) {
      back.lanes[static_cast<std::size_t>(last - lane.released_by)].released_by = last - l;
    }
  }
  for (std::size_t d = 0; d < back.of_device.size(); ++d) {
    for (auto lane = problem.of_device[d].rbegin(); lane != problem.of_device[d].rend(); ++lane) {
      back.of_device[d].push_back(last - *lane);
    }
  }
  add_paths(back);
  return back;
}

std::vector<std::vector<Ticks>> reversed_times(const std::vector<std::vector<Ticks>>& times) {
  std::vector<std::vector<Ticks>> turned(times.rbegin(), times.rend());
  std::ranges::for_each(turned, [](std::vector<Ticks>& lane) { std::ranges::reverse(lane); });
  return turned;
}

}  // namespace stagecraft
