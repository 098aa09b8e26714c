#include "stagecraft/scheduler/search/first_schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {
namespace {

Schedule one_by_one(const SearchRequest& request,
                    const StageGraph& graph,
                    const std::vector<int>& row_of) {
  std::vector<RowList> lists(static_cast<std::size_t>(request.devices));
  const int stages = graph.size();
  const auto list_for = [&](int s) -> RowList& {
    return lists[static_cast<std::size_t>(row_of[static_cast<std::size_t>(s)])];
  };
  for (int m = 0; m < graph.microbatches_per_replica(request.microbatches); ++m) {
    for (int s = 0; s < stages; ++s) {
      list_for(s).forward(s, m);
    }
    for (int s = stages - 1; s >= 0; --s) {
      if (request.split) {
        list_for(s).backward_input(s, m);
        list_for(s).backward_weight(s, m);
      } else {
        list_for(s).backward(s, m);
      }
    }
  }
  std::vector<Schedule::Row> rows;
  for (RowList& list : lists) {
    rows.push_back(list.take());
  }
  return list_of(std::move(rows), graph, request.microbatches);
}

BuildRequest request_to(const BuilderInfo& builder,
                        const SearchRequest& request,
                        const Costs& costs) {
  BuildRequest built{.devices = request.devices, .microbatches = request.microbatches};
  if (builder.chunks == ChunkRule::Open) {
    built.chunks = request.chunks;
  }
  if (builder.takes_costs && request.chunks == 1) {
    built.costs = costs;
    built.set["cap"] = std::to_string(request.cap);
  }
  return built;
}

bool has_kinds(const Schedule& schedule, bool split) {
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (cell.is_group() ||
            (task.kind != CellKind::Forward && (task.kind == CellKind::Backward) == split)) {
          return false;
        }
      }
    }
  }
  return true;
}

bool suits(const Schedule& schedule,
           const SearchRequest& request,
           const StageGraph& searched,
           const std::vector<int>& row_of) {
  const StageGraph graph = schedule.stage_graph();
  if (graph.size() != searched.size() || graph.replicas() != searched.replicas() ||
      !has_kinds(schedule, request.split)) {
    return false;
  }
  const Placement placement = Placement::of(schedule, graph.size());
  for (int s = 0; s < graph.size(); ++s) {
    if (placement.row(StageId(s)) != row_of[static_cast<std::size_t>(s)]) {
      return false;
    }
  }
  return std::ranges::all_of(schedule.rows(), [&](const Schedule::Row& row) {
    return peak_in_flight(row, graph) <= request.cap;
  });
}

std::optional<Schedule> built(const BuilderInfo& builder,
                              const SearchRequest& request,
                              const StageGraph& graph,
                              const std::vector<int>& row_of,
                              const Costs& costs) {
  try {
    Schedule schedule = build_schedule(builder.name, request_to(builder, request, costs)).to_list();
    return suits(schedule, request, graph, row_of) ? std::optional(std::move(schedule))
                                                   : std::nullopt;
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleParameter) {
      throw;
    }
    return std::nullopt;  // the builder does not take these counts
  }
}

}  // namespace

FirstSchedule first_schedule(const SearchRequest& request,
                             const StageGraph& graph,
                             const std::vector<int>& row_of,
                             const Costs& costs) {
  FirstSchedule best{one_by_one(request, graph, row_of), "", 0};
  best.makespan = simulate(best.schedule, graph, costs).makespan;
  if (!std::isfinite(best.makespan * request.devices)) {  // no other schedule takes longer
    throw Error(Errc::ScheduleParameter,
                "the durations add up to more than a number can hold; give them in a larger unit");
  }
  for (const BuilderInfo& builder : builders()) {
    if (builder.takes_graph) {
      continue;  // on a chain they make the same schedules as the others
    }
    if (std::optional<Schedule> schedule = built(builder, request, graph, row_of, costs)) {
      const double makespan = simulate(*schedule, graph, costs).makespan;
      if (makespan < best.makespan) {
        best = {std::move(*schedule), std::string(builder.name), makespan};
      }
    }
  }
  return best;
}

Schedule list_of(std::vector<Schedule::Row> rows, const StageGraph& graph, int microbatches) {
  Schedule::Headers headers{.stages = graph.size(), .microbatches = microbatches};
  if (graph.replicas() > 1) {
    headers.graph = graph;
  }
  return {Schedule::Form::List, std::move(rows), std::move(headers)};
}

}  // namespace stagecraft
