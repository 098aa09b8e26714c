#include "stagecraft/scheduler/search/heads.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "stagecraft/scheduler/search/cap_rules.h"
#include "stagecraft/scheduler/search/reversed_problem.h"

namespace stagecraft {
namespace {

constexpr Ticks kNoPath = std::numeric_limits<Ticks>::min();
/// With more tasks, heads and tails follow single paths only: all pairs would be too many.
constexpr std::size_t kMaxPairedTasks = 1200;

std::size_t index_of(int i) {
  return static_cast<std::size_t>(i);
}

/// Computes heads in an order in which each task comes after those it waits for: microbatch by
/// microbatch, lane by lane.
class HeadTimes {
 public:
  explicit HeadTimes(const SearchProblem& problem)
      : problem_(problem),
        lanes_(problem.lanes.size()),
        tasks_(lanes_ * index_of(problem.microbatches)),
        heads_(tasks_, 0),
        wait_(tasks_ <= kMaxPairedTasks ? tasks_ : 0),
        before_(index_of(problem.devices)) {
    for (int m = 0; m < problem.microbatches; ++m) {
      for (const Lane& lane : problem.lanes) {
        place(lane, m);
      }
    }
  }

  [[nodiscard]] std::vector<std::vector<Ticks>> take() const {
    std::vector<std::vector<Ticks>> heads(lanes_);
    for (std::size_t t = 0; t < tasks_; ++t) {
      heads[t % lanes_].push_back(heads_[t]);
    }
    return heads;
  }

 private:
  [[nodiscard]] std::size_t task(int lane, int m) const {
    return index_of(m) * lanes_ + index_of(lane);
  }
  [[nodiscard]] const Lane& lane_of(std::size_t task) const {
    return problem_.lanes[task % lanes_];
  }

  void place(const Lane& lane, int m) {
    const int l = static_cast<int>(&lane - problem_.lanes.data());
    const std::size_t t = task(l, m);
    if (!wait_.empty()) {
      wait_[t].assign(t, kNoPath);
    }
    if (m > 0) {
      follow(t, task(l, m - 1), 0);
    }
    for (const Lane::Feed& feed : lane.feeds) {
      follow(t, task(feed.lane, m), feed.transfer);
    }
    if (lane.takes) {
      const int released = last_released_before(problem_, lane, m);
      for (const int release : lane.path_releases) {
        if (released >= 0) {
          follow(t, task(release, released), 0);
        }
      }
      heads_[t] = std::max(heads_[t], releases_end(lane, m));
    }
    if (!wait_.empty()) {
      behind_devices(t);
    }
  }

  /// Records that task `t` starts no sooner than `wait` after the end of task `from`.
  void follow(std::size_t t, std::size_t from, Ticks wait) {
    const Ticks time = lane_of(from).time;
    heads_[t] = std::max(heads_[t], heads_[from] + time + wait);
    if (wait_.empty()) {
      return;
    }
    wait_[t][from] = std::max(wait_[t][from], wait);
    for (std::size_t u = 0; u < from; ++u) {
      if (wait_[from][u] != kNoPath) {
        wait_[t][u] = std::max(wait_[t][u], wait_[from][u] + time + wait);
      }
    }
  }

  /// Returns by PA-1 the time at which the required number of the path's releases can have ended.
  [[nodiscard]] Ticks releases_end(const Lane& lane, int m) const {
    const int count = released_before(problem_, lane, m);
    if (count <= 0) {
      return 0;
    }
    std::vector<Ticks> ends;
    for (const int release : lane.path_releases) {
      for (int i = 0; i < m; ++i) {
        ends.push_back(heads_[task(release, i)] + problem_.lanes[index_of(release)].time);
      }
    }
    std::ranges::sort(ends);
    return ends[index_of(count - 1)];
  }

  /// Applies the work that each device must do before task `t` can start.
  void behind_devices(std::size_t t) {
    for (std::vector<MachineJob>& jobs : before_) {
      jobs.clear();
    }
    for (std::size_t u = 0; u < t; ++u) {
      if (wait_[t][u] != kNoPath) {
        before_[index_of(lane_of(u).device)].push_back({heads_[u], lane_of(u).time, wait_[t][u]});
      }
    }
    for (std::vector<MachineJob>& jobs : before_) {
      heads_[t] = std::max(heads_[t], one_machine_bound(jobs));
    }
  }

  const SearchProblem& problem_;
  std::size_t lanes_;
  std::size_t tasks_;
  std::vector<Ticks> heads_;
  /// The least time from the end of the second task to the start of the first; kNoPath if the first
  /// need not wait. Empty if there are too many tasks.
  std::vector<std::vector<Ticks>> wait_;
  std::vector<std::vector<MachineJob>> before_;  ///< for one task at a time, by device
};

/// Returns the least time from the start of a task of lane `from` to the end of one of lane `to`,
/// of the same microbatch. Requires: the second waits for the first.
Ticks way(const SearchProblem& problem, int from, int to) {
  std::vector<Ticks> end(problem.lanes.size(), kNoPath);
  end[index_of(from)] = problem.lanes[index_of(from)].time;
  for (int l = from + 1; l <= to; ++l) {
    for (const Lane::Feed& feed : problem.lanes[index_of(l)].feeds) {
      if (end[index_of(feed.lane)] != kNoPath) {
        end[index_of(l)] =
            std::max(end[index_of(l)],
                     end[index_of(feed.lane)] + feed.transfer + problem.lanes[index_of(l)].time);
      }
    }
  }
  return end[index_of(to)];
}

Ticks sum_of_least(std::vector<Ticks>& times, std::size_t count) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(count - 1));
  return std::accumulate(
      times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count), Ticks{0});
}

/// Returns the least time in which the device can hold all its activations. The cap gives the
/// number of places. Each place holds one stage of one microbatch at a time, from its forward to
/// the end of its backward; it waits for the first of them and for the work after the last. If one
/// place stays empty, another holds two; the second head and first tail of that place are no less
/// and stand for the empty one's. Source: Carlier, "Scheduling jobs with release dates and tails on
/// identical machines" (1987).
Ticks holding_bound(const SearchProblem& problem, const std::vector<int>& lanes) {
  Ticks held = 0;
  std::vector<Ticks> heads;
  std::vector<Ticks> tails;
  for (const int l : lanes) {
    const Lane& lane = problem.lanes[index_of(l)];
    if (lane.takes) {
      held += way(problem, l, lane.released_by) * problem.microbatches;
      const std::vector<Ticks>& h = problem.heads[index_of(l)];
      const std::vector<Ticks>& t = problem.tails[index_of(lane.released_by)];
      heads.insert(heads.end(), h.begin(), h.end());
      tails.insert(tails.end(), t.begin(), t.end());
    }
  }
  const std::size_t places = std::min(heads.size(), index_of(problem.cap));
  const Ticks all = sum_of_least(heads, places) + held + sum_of_least(tails, places);
  return (all + static_cast<Ticks>(places) - 1) / static_cast<Ticks>(places);
}

}  // namespace

std::vector<std::vector<Ticks>> heads_of(const SearchProblem& problem) {
  return HeadTimes(problem).take();
}

void add_bounds(SearchProblem& problem) {
  problem.heads = heads_of(problem);
  problem.tails = reversed_times(heads_of(reversed_problem(problem)));
  std::vector<std::vector<MachineJob>> jobs(index_of(problem.devices));
  for (std::size_t l = 0; l < problem.lanes.size(); ++l) {
    const Lane& lane = problem.lanes[l];
    for (std::size_t m = 0; m < index_of(problem.microbatches); ++m) {
      jobs[index_of(lane.device)].push_back({problem.heads[l][m], lane.time, problem.tails[l][m]});
    }
  }
  for (const std::vector<int>& lanes : problem.of_device) {
    problem.bound = std::max(problem.bound, holding_bound(problem, lanes));
  }
  for (std::vector<MachineJob>& of_device : jobs) {
    problem.bound = std::max(problem.bound, one_machine_bound(of_device));
  }
}

}  // namespace stagecraft
