#include "stagecraft/scheduler/search/make_search_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/search/cap_rules.h"
#include "stagecraft/scheduler/search/heads.h"

namespace stagecraft {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// Returns the longest time of which all times are multiples; otherwise a millionth of the longest,
/// or more. All tasks together take at most 1e9 ticks.
double tick_of(const std::vector<double>& times, int microbatches) {
  constexpr double kMostTicks = 1e9;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  double total = 0;
  for (const double time : times) {
    most = std::max(most, time);
    total += time * microbatches;
    least = time > 0 ? std::min(least, time) : least;
  }
  for (int parts = 1; parts <= 1000; ++parts) {
    const double tick = least / parts;
    if (total / tick > kMostTicks) {
      break;
    }
    const bool fits = std::ranges::all_of(times, [&](double time) {
      const double ticks = time / tick;
      return std::abs(ticks - std::round(ticks)) < 1e-9 * std::max(1.0, ticks);
    });
    if (fits) {
      return tick;
    }
  }
  return std::max(most / 1e6, total / kMostTicks);
}

/// A lane with its times still in units of the costs.
struct TimedLane {
  Lane lane;
  double time = 0;
  std::vector<double> transfers;  ///< by feed
};

std::vector<TimedLane> timed_lanes(const StageGraph& graph,
                                   const std::vector<int>& row_of,
                                   bool split,
                                   const Costs& costs) {
  const int stages = graph.size();
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
  const auto release = [&](TimedLane& made) {
    made.lane.releases = true;
    lanes[at(made.lane.stage)].lane.released_by = static_cast<int>(lanes.size()) - 1;
  };
  for (int s = 0; s < stages; ++s) {
    TimedLane& forward = add(CellKind::Forward, s);
    forward.lane.takes = true;
    for (const StageId before : graph.preds(StageId(s))) {
      fed_by(forward, before.value, {before.value, s});
    }
  }
  for (int s = stages - 1; s >= 0; --s) {
    TimedLane& backward = add(split ? CellKind::BackwardInput : CellKind::Backward, s);
    if (!split) {
      release(backward);
    }
    backward.lane.feeds_nobody = !split && graph.preds(StageId(s)).empty();
    fed_by(backward, s, {s, s});
    for (const StageId behind : graph.succs(StageId(s))) {
      fed_by(backward, 2 * stages - 1 - behind.value, {s, behind.value});
    }
  }
  for (int s = stages - 1; split && s >= 0; --s) {
    TimedLane& weight = add(CellKind::BackwardWeight, s);
    release(weight);
    weight.lane.feeds_nobody = true;
    fed_by(weight, 2 * stages - 1 - s, {s, s});
  }
  return lanes;
}

}  // namespace

SearchProblem make_search_problem(const StageGraph& graph,
                                  const std::vector<int>& row_of,
                                  int microbatches,
                                  bool split,
                                  int cap,
                                  const Costs& costs) {
  SearchProblem problem{.devices = std::ranges::max(row_of) + 1,
                        .microbatches = graph.microbatches_per_replica(microbatches),
                        .cap = cap};
  const std::vector<TimedLane> timed = timed_lanes(graph, row_of, split, costs);
  std::vector<double> times;
  for (const TimedLane& lane : timed) {
    times.push_back(lane.time);
    times.insert(times.end(), lane.transfers.begin(), lane.transfers.end());
  }
  problem.tick = tick_of(times, problem.microbatches);
  const auto ticks = [&](double time) {
    return static_cast<Ticks>(std::floor(time / problem.tick * (1 + 1e-12) + 1e-9));
  };
  problem.of_device.resize(at(problem.devices));
  for (const TimedLane& lane : timed) {
    Lane made = lane.lane;
    made.time = ticks(lane.time);
    if (made.time < 1) {
      throw Error(Errc::ScheduleParameter,
                  fmt::format("search rounds times to millionths of the longest, but a {} of stage "
                              "{} takes less; give it a longer time",
                              letter(made.kind),
                              made.stage));
    }
    for (std::size_t f = 0; f < made.feeds.size(); ++f) {
      made.feeds[f].transfer = ticks(lane.transfers[f]);
    }
    problem.of_device[at(made.device)].push_back(static_cast<int>(problem.lanes.size()));
    problem.lanes.push_back(std::move(made));
  }
  add_paths(problem);
  add_bounds(problem);
  return problem;
}

}  // namespace stagecraft
