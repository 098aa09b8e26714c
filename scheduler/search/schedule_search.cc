#include "stagecraft/scheduler/search/schedule_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"
#include "stagecraft/scheduler/costs/cut_costs.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/search/first_schedule.h"
#include "stagecraft/scheduler/search/make_search_problem.h"
#include "stagecraft/scheduler/search/narrowing.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {
namespace {

void check_replicas(const SearchRequest& request) {
  if (request.chunks > 1) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("replicas have one stage each on a device; got chunks {}; nearest: 1",
                            request.chunks));
  }
  require_legal("search",
                "an even number of microbatches, half for each replica",
                "microbatches",
                request.microbatches,
                [](int m) { return m % 2 == 0; });
}

void check(const SearchRequest& request) {
  constexpr int kMostLanes = 64;
  constexpr int kMostTasks = 4096;  // the search is as deep as there are tasks
  require_positive("search", "devices", request.devices);
  require_positive("search", "microbatches", request.microbatches);
  require_positive("search", "chunks", request.chunks);
  if (request.cap < request.chunks) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("a microbatch is in flight on each of a device's {} stages before its "
                            "first backward, so the cap must be at least that; got {}; nearest: {}",
                            request.chunks,
                            request.cap,
                            request.chunks));
  }
  if (request.placement == StagePlacement::Replicas) {
    check_replicas(request);
  }
  const int kinds = request.split ? 3 : 2;
  const double tasks = 1.0 * kinds * request.devices * request.chunks * request.microbatches;
  if (tasks > kMostTasks) {
    throw Error(
        Errc::ScheduleParameter,
        fmt::format(
            "search takes at most {} tasks, got {:.0f}; use smaller numbers", kMostTasks, tasks));
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
                  fmt::format("search needs tasks that take time, but one of stage {} takes none; "
                              "give it a short time",
                              s));
    }
  }
}

Schedule schedule_of(const SearchProblem& problem,
                     const StageGraph& graph,
                     int microbatches,
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
  return list_of(std::move(rows), graph, microbatches);
}

}  // namespace

StageGraph searched_graph(const SearchRequest& request) {
  return request.placement == StagePlacement::Replicas
             ? two_replicas(request.devices)
             : StageGraph::chain(request.devices * request.chunks);
}

std::vector<int> rows_of_stages(const SearchRequest& request) {
  const int stages = searched_graph(request).size();
  std::vector<int> rows;
  for (int s = 0; s < stages; ++s) {
    const int place = s % request.devices;
    const bool back = request.placement != StagePlacement::Loop && s / request.devices % 2 == 1;
    rows.push_back(back ? request.devices - 1 - place : place);
  }
  return rows;
}

SearchResult search_schedule(const SearchRequest& request) {
  check(request);
  const StageGraph graph = searched_graph(request);
  const Costs costs = cut_costs(request.costs, stages_of(request.costs, request.devices), graph);
  check_times(costs.stages, graph.size(), request.split);
  const std::vector<int> rows = rows_of_stages(request);
  FirstSchedule first = first_schedule(request, graph, rows, costs);

  const SearchProblem problem =
      make_search_problem(graph, rows, request.microbatches, request.split, request.cap, costs);
  const auto ticks = static_cast<Ticks>(std::ceil(first.makespan / problem.tick - 1e-6));
  Narrowing::Limits limits{.states = request.states};
  if (request.keep_going) {
    limits.keep_going = [&](Ticks lower, Ticks upper) {
      return request.keep_going(
          {static_cast<double>(lower) * problem.tick,
           std::min(first.makespan, static_cast<double>(upper) * problem.tick)});
    };
  }
  Narrowing narrowing(problem, ticks, std::move(limits));
  narrowing.run();

  SearchResult result{.schedule = std::move(first.schedule),
                      .makespan = first.makespan,
                      .bound = static_cast<double>(narrowing.lower()) * problem.tick,
                      .optimal = narrowing.lower() >= narrowing.upper(),
                      .builder = first.builder,
                      .builder_makespan = first.makespan,
                      .states = narrowing.states()};
  if (!narrowing.order().empty()) {
    Schedule found = schedule_of(problem, graph, request.microbatches, narrowing.order());
    const double makespan = simulate(found, graph, costs).makespan;
    if (makespan < first.makespan) {  // true in ticks, which may be rounded
      result.schedule = std::move(found);
      result.makespan = makespan;
    }
  }
  SC_CHECK(validate(result.schedule, graph, {.microbatches = request.microbatches}).empty(),
           "the search found a schedule that cannot run");
  return result;
}

}  // namespace stagecraft
