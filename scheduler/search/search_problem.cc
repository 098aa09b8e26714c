#include "stagecraft/scheduler/search/search_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stagecraft {
namespace {

constexpr Ticks kNoPath = std::numeric_limits<Ticks>::min();
/// Beyond so many tasks heads and tails are those of single paths: all pairs would be too many.
constexpr std::size_t kMaxPairedTasks = 1200;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// The longest time of which all these are multiples; else a millionth of the longest.
double tick_of(const std::vector<double>& times) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const double time : times) {
    most = std::max(most, time);
    least = time > 0 ? std::min(least, time) : least;
  }
  for (int parts = 1; parts <= 1000; ++parts) {
    const double tick = least / parts;
    const bool fits = std::ranges::all_of(times, [&](double time) {
      const double ticks = time / tick;
      return std::abs(ticks - std::round(ticks)) < 1e-9 * std::max(1.0, ticks);
    });
    if (fits) {
      return tick;
    }
  }
  return most / 1e6;
}

/// Lanes with their times still in units of the costs.
struct TimedLane {
  Lane lane;
  double time = 0;
  std::vector<double> transfers;  ///< by feed
};

std::vector<TimedLane> timed_lanes(const std::vector<int>& row_of, bool split, const Costs& costs) {
  const int stages = static_cast<int>(row_of.size());
  std::vector<TimedLane> lanes;
  const auto add = [&](CellKind kind, int s) -> TimedLane& {
    TimedLane& made = lanes.emplace_back();
    made.lane.kind = kind;
    made.lane.stage = s;
    made.lane.device = row_of[at(s)];
    made.time = costs.stages.of_stage(StageId(s)).of(kind);
    return made;
  };
  const auto fed_by = [&](TimedLane& made, int lane, std::pair<int, int> edge) {
    made.lane.feeds.push_back({lane, 0});
    const TimedLane& feed = lanes[at(lane)];
    made.transfers.push_back(feed.lane.stage == made.lane.stage
                                 ? 0
                                 : costs.links.transfer(edge, feed.lane.device, made.lane.device));
  };
  for (int s = 0; s < stages; ++s) {
    TimedLane& forward = add(CellKind::Forward, s);
    forward.lane.takes = true;
    if (s > 0) {
      fed_by(forward, s - 1, {s - 1, s});
    }
  }
  for (int s = stages - 1; s >= 0; --s) {
    TimedLane& backward = add(split ? CellKind::BackwardInput : CellKind::Backward, s);
    backward.lane.releases = !split;
    backward.lane.feeds_nobody = !split && s == 0;
    const int own = static_cast<int>(lanes.size()) - 1;
    fed_by(backward, s, {s, s});
    if (s < stages - 1) {
      fed_by(backward, own - 1, {s, s + 1});
    }
  }
  for (int s = stages - 1; split && s >= 0; --s) {
    TimedLane& weight = add(CellKind::BackwardWeight, s);
    weight.lane.releases = true;
    weight.lane.feeds_nobody = true;
    fed_by(weight, 2 * stages - 1 - s, {s, s});
  }
  return lanes;
}

/// One way along which heads or tails are found: tasks in an order in which each stands behind
/// those it waits for, with what it waits for directly.
struct Paths {
  struct Arc {
    int from = 0;    ///< a task that stands before
    Ticks wait = 0;  ///< from its end to the start of the other
  };
  std::vector<std::vector<Arc>> arcs;  ///< by task
  std::vector<Ticks> time;
  std::vector<int> device;
};

Paths paths_of(const SearchProblem& problem) {
  Paths paths;
  const int lanes = static_cast<int>(problem.lanes.size());
  const auto number = [&](int lane, int m) { return m * lanes + lane; };
  const auto release_of = [&](const Lane& forward) {
    const auto found = std::ranges::find_if(problem.lanes, [&](const Lane& lane) {
      return lane.releases && lane.stage == forward.stage;
    });
    return static_cast<int>(found - problem.lanes.begin());
  };
  for (int m = 0; m < problem.microbatches; ++m) {
    for (int l = 0; l < lanes; ++l) {
      const Lane& lane = problem.lanes[at(l)];
      std::vector<Paths::Arc>& arcs = paths.arcs.emplace_back();
      paths.time.push_back(lane.time);
      paths.device.push_back(lane.device);
      if (m > 0) {
        arcs.push_back({number(l, m - 1), 0});
      }
      for (const Lane::Feed& feed : lane.feeds) {
        arcs.push_back({number(feed.lane, m), feed.transfer});
      }
      if (lane.takes && m >= problem.cap) {
        arcs.push_back({number(release_of(lane), m - problem.cap), 0});
      }
    }
  }
  return paths;
}

/// The same with time running backwards: heads there are tails here.
Paths reversed(const Paths& paths) {
  const int last = static_cast<int>(paths.arcs.size()) - 1;
  Paths back;
  back.arcs.resize(paths.arcs.size());
  back.time.assign(paths.time.rbegin(), paths.time.rend());
  back.device.assign(paths.device.rbegin(), paths.device.rend());
  for (int task = 0; task <= last; ++task) {
    for (const Paths::Arc& arc : paths.arcs[at(task)]) {
      back.arcs[at(last - arc.from)].push_back({last - task, arc.wait});
    }
  }
  return back;
}

/// The earliest start of every task: along single paths, and by what devices must do before it.
std::vector<Ticks> heads_of(const Paths& paths, int devices) {
  const std::size_t tasks = paths.arcs.size();
  const bool paired = tasks <= kMaxPairedTasks;
  std::vector<Ticks> heads(tasks, 0);
  // From the end of the one task to the start of the other, at least; kNoPath where the other need
  // not wait for it.
  std::vector<std::vector<Ticks>> wait(paired ? tasks : 0);
  std::vector<std::vector<MachineJob>> before(at(devices));
  for (std::size_t t = 0; t < tasks; ++t) {
    for (const Paths::Arc& arc : paths.arcs[t]) {
      const std::size_t from = at(arc.from);
      heads[t] = std::max(heads[t], heads[from] + paths.time[from] + arc.wait);
    }
    if (!paired) {
      continue;
    }
    wait[t].assign(t, kNoPath);
    for (const Paths::Arc& arc : paths.arcs[t]) {
      const std::size_t from = at(arc.from);
      wait[t][from] = std::max(wait[t][from], arc.wait);
      for (std::size_t u = 0; u < from; ++u) {
        if (wait[from][u] != kNoPath) {
          wait[t][u] = std::max(wait[t][u], wait[from][u] + paths.time[from] + arc.wait);
        }
      }
    }
    for (std::vector<MachineJob>& jobs : before) {
      jobs.clear();
    }
    for (std::size_t u = 0; u < t; ++u) {
      if (wait[t][u] != kNoPath) {
        before[at(paths.device[u])].push_back({heads[u], paths.time[u], wait[t][u]});
      }
    }
    for (std::vector<MachineJob>& jobs : before) {
      heads[t] = std::max(heads[t], one_machine_bound(jobs));
    }
  }
  return heads;
}

void add_bounds(SearchProblem& problem) {
  const Paths paths = paths_of(problem);
  const std::vector<Ticks> heads = heads_of(paths, problem.devices);
  std::vector<Ticks> tails = heads_of(reversed(paths), problem.devices);
  std::ranges::reverse(tails);
  const std::size_t lanes = problem.lanes.size();
  problem.heads.resize(lanes);
  problem.tails.resize(lanes);
  std::vector<std::vector<MachineJob>> jobs(at(problem.devices));
  for (std::size_t t = 0; t < heads.size(); ++t) {
    problem.heads[t % lanes].push_back(heads[t]);
    problem.tails[t % lanes].push_back(tails[t]);
    jobs[at(paths.device[t])].push_back({heads[t], paths.time[t], tails[t]});
  }
  for (std::vector<MachineJob>& of_device : jobs) {
    problem.bound = std::max(problem.bound, one_machine_bound(of_device));
  }
}

}  // namespace

SearchProblem search_problem(
    const std::vector<int>& row_of, int microbatches, bool split, int cap, const Costs& costs) {
  SearchProblem problem{
      .devices = std::ranges::max(row_of) + 1, .microbatches = microbatches, .cap = cap};
  const std::vector<TimedLane> timed = timed_lanes(row_of, split, costs);
  std::vector<double> times;
  for (const TimedLane& lane : timed) {
    times.push_back(lane.time);
    times.insert(times.end(), lane.transfers.begin(), lane.transfers.end());
  }
  problem.tick = tick_of(times);
  const auto ticks = [&](double time) {
    return static_cast<Ticks>(std::floor(time / problem.tick * (1 + 1e-12) + 1e-9));
  };
  problem.of_device.resize(at(problem.devices));
  for (const TimedLane& lane : timed) {
    Lane made = lane.lane;
    made.time = std::max<Ticks>(1, ticks(lane.time));
    for (std::size_t f = 0; f < made.feeds.size(); ++f) {
      made.feeds[f].transfer = ticks(lane.transfers[f]);
    }
    problem.of_device[at(made.device)].push_back(static_cast<int>(problem.lanes.size()));
    problem.lanes.push_back(std::move(made));
  }
  add_bounds(problem);
  return problem;
}

}  // namespace stagecraft
