#include "stagecraft/scheduler/search/schedule_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/row_list.h"
#include "stagecraft/scheduler/cut_costs.h"
#include "stagecraft/scheduler/search/first_schedule.h"
#include "stagecraft/scheduler/search/order_search.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft {
namespace {

void check(const SearchRequest& request) {
  constexpr int kMostLanes = 64;
  constexpr int kMostTasks = 4096;  // the search goes as deep as there are tasks
  require_positive("search", "devices", request.devices);
  require_positive("search", "microbatches", request.microbatches);
  require_positive("search", "chunks", request.chunks);
  if (request.cap < request.chunks) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("a microbatch is in flight on each of a device's {} stages before its "
                            "first backward, so the cap is at least that; got {}; nearest: {}",
                            request.chunks,
                            request.cap,
                            request.chunks));
  }
  const int kinds = request.split ? 3 : 2;
  const double tasks = 1.0 * kinds * request.devices * request.chunks * request.microbatches;
  if (tasks > kMostTasks) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("search takes at most {} tasks, and these are {:.0f}; use smaller "
                            "numbers",
                            kMostTasks,
                            tasks));
  }
  if (request.chunks * kinds > kMostLanes) {
    throw Error(
        Errc::ScheduleParameter,
        fmt::format("search takes at most {} chunks, got {}", kMostLanes / kinds, request.chunks));
  }
}

void check_times(const StageCosts& costs, int stages, bool split) {
  for (int s = 0; s < stages; ++s) {
    const Durations& d = costs.of_stage(StageId(s));
    const double least = split ? std::min(d.backward_input, d.backward_weight) : d.backward;
    if (!(std::min(d.forward, least) > 0)) {
      throw Error(Errc::ScheduleParameter,
                  fmt::format("search needs tasks that take time, and one of stage {} takes none; "
                              "give it a small one",
                              s));
    }
  }
}

Schedule schedule_of(const SearchProblem& problem,
                     int stages,
                     const std::vector<std::vector<int>>& order) {
  std::vector<int> done(problem.lanes.size(), 0);
  std::vector<Schedule::Row> rows;
  for (const std::vector<int>& lanes : order) {
    Schedule::Row& row = rows.emplace_back();
    for (const int l : lanes) {
      const Lane& lane = problem.lanes[static_cast<std::size_t>(l)];
      row.emplace_back(
          Task{lane.kind, StageId(lane.stage), Microbatch(done[static_cast<std::size_t>(l)]++)});
    }
  }
  return {Schedule::Form::List,
          std::move(rows),
          {.stages = stages, .microbatches = problem.microbatches}};
}

/// Narrows [lower, upper] down, where upper is what the best order takes and lower what none can go
/// below. A question that a share of the states does not answer leaves a gap: above it orders are
/// looked for, below it proofs; when both are through, the share grows.
class Narrowing {
 public:
  Narrowing(const SearchProblem& problem, Ticks upper, const SearchRequest& request)
      : search_(problem, request.keep_going),
        keep_going_(request.keep_going),
        most_(request.states),
        lower_(problem.bound),
        upper_(std::max(upper, problem.bound)) {}

  void run() {
    constexpr std::size_t kFirstShare = 20'000;
    for (std::size_t share = kFirstShare; lower_ < upper_ && may_go_on(); share *= 4) {
      round(share);
    }
  }

  [[nodiscard]] Ticks lower() const { return lower_; }
  [[nodiscard]] Ticks upper() const { return upper_; }
  [[nodiscard]] std::size_t states() const { return search_.states(); }
  /// Empty where nothing better than `upper` was found.
  [[nodiscard]] const std::vector<std::vector<int>>& order() const { return order_; }

 private:
  [[nodiscard]] bool may_go_on() const {
    return search_.states() < most_ && (!keep_going_ || keep_going_());
  }

  void round(std::size_t share) {
    Ticks above = lower_;  // below this, orders are not looked for
    Ticks below = upper_;  // from this on, proofs are not
    bool open = true;      // no question was left yet
    bool first = true;
    while (lower_ < upper_ && may_go_on()) {
      Ticks horizon = lower_;
      if (open) {
        // The bound itself first: it is met more often than not.
        horizon = first ? lower_ : lower_ + (upper_ - 1 - lower_) / 2;
      } else if (above < upper_) {
        horizon = above + (upper_ - 1 - above + 1) / 2;
      } else if (lower_ < below) {
        horizon = lower_ + (below - 1 - lower_) / 2;
      } else {
        return;
      }
      const bool at_bound = std::exchange(first, false);
      if (!ask(horizon, share)) {
        if (order_.empty() && !at_bound) {
          (void)ask(upper_ - 1, share);  // any order at all may be far better than what there is
        }
        above = open ? horizon + 1 : std::max(above, horizon + 1);
        below = open ? horizon : std::min(below, horizon);
        open = false;
      }
    }
  }

  /// Whether the question had an answer.
  bool ask(Ticks horizon, std::size_t share) {
    switch (search_.run(horizon, std::min(share, most_ - search_.states()))) {
      case OrderSearch::Verdict::Found:
        upper_ = search_.makespan();
        order_ = search_.order();
        return true;
      case OrderSearch::Verdict::None:
        lower_ = horizon + 1;
        return true;
      case OrderSearch::Verdict::Unknown:
        break;
    }
    return false;
  }

  OrderSearch search_;
  std::function<bool()> keep_going_;
  std::size_t most_;
  Ticks lower_;
  Ticks upper_;
  std::vector<std::vector<int>> order_;
};

}  // namespace

std::vector<int> rows_of_stages(int devices, int chunks, StagePlacement placement) {
  std::vector<int> rows;
  for (int s = 0; s < devices * chunks; ++s) {
    const int place = s % devices;
    const bool back = placement == StagePlacement::Wave && s / devices % 2 == 1;
    rows.push_back(back ? devices - 1 - place : place);
  }
  return rows;
}

SearchResult search_schedule(const SearchRequest& request) {
  check(request);
  const int stages = request.devices * request.chunks;
  const StageGraph chain = StageGraph::chain(stages);
  const Costs costs = cut_costs(request.costs, stages_of(request.costs, request.devices), chain);
  check_times(costs.stages, stages, request.split);
  const std::vector<int> rows = rows_of_stages(request.devices, request.chunks, request.placement);
  FirstSchedule first = first_schedule(request, rows, costs);

  const SearchProblem problem =
      search_problem(rows, request.microbatches, request.split, request.cap, costs);
  const auto ticks = static_cast<Ticks>(std::ceil(first.makespan / problem.tick - 1e-6));
  Narrowing narrowing(problem, ticks, request);
  narrowing.run();

  SearchResult result{.schedule = std::move(first.schedule),
                      .makespan = first.makespan,
                      .bound = static_cast<double>(narrowing.lower()) * problem.tick,
                      .optimal = narrowing.lower() >= narrowing.upper(),
                      .builder = first.builder,
                      .builder_makespan = first.makespan,
                      .states = narrowing.states()};
  if (!narrowing.order().empty()) {
    result.schedule = schedule_of(problem, stages, narrowing.order());
    result.makespan = simulate(result.schedule, chain, costs).makespan;
  }
  SC_CHECK(validate(result.schedule, chain, {.microbatches = request.microbatches}).empty(),
           "the search found a schedule that cannot run");
  return result;
}

}  // namespace stagecraft
