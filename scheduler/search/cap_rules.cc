#include "stagecraft/scheduler/search/cap_rules.h"

#include <algorithm>

namespace stagecraft {
namespace {

/// Returns whether a microbatch's task of lane `to` waits for that of lane `from`, directly or
/// indirectly.
bool leads_to(const SearchProblem& problem, int from, int to) {
  std::vector<bool> waits(problem.lanes.size(), false);
  waits[static_cast<std::size_t>(from)] = true;
  for (std::size_t l = static_cast<std::size_t>(from) + 1; l <= static_cast<std::size_t>(to); ++l) {
    waits[l] = std::ranges::any_of(problem.lanes[l].feeds, [&](const Lane::Feed& feed) {
      return waits[static_cast<std::size_t>(feed.lane)];
    });
  }
  return waits[static_cast<std::size_t>(to)];
}

}  // namespace

void add_paths(SearchProblem& problem) {
  for (const std::vector<int>& lanes : problem.of_device) {
    for (const int l : lanes) {
      Lane& lane = problem.lanes[static_cast<std::size_t>(l)];
      if (!lane.takes) {
        continue;
      }
      lane.path_before = 0;
      lane.path_takes.clear();
      lane.path_releases.clear();
      for (const int k : lanes) {
        const Lane& other = problem.lanes[static_cast<std::size_t>(k)];
        if (other.takes && leads_to(problem, k, lane.released_by)) {
          lane.path_takes.push_back(k);
          lane.path_releases.push_back(other.released_by);
          lane.path_before += k == l || leads_to(problem, k, l) ? 1 : 0;
        }
      }
    }
  }
}

int last_released_before(const SearchProblem& problem, const Lane& lane, int m) {
  // Each other lane has at most m releases: further ones need the result of this task.
  const int others = static_cast<int>(lane.path_releases.size()) - 1;
  return std::max(m - problem.cap, released_before(problem, lane, m) - others * m - 1);
}

}  // namespace stagecraft
