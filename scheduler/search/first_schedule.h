/// first_schedule returns the schedule that a search starts with: the best that any builder makes
/// for the request.
///
/// A builder counts if it places every stage as the request does, splits backwards or leaves them
/// whole as requested, and keeps the cap. If no builder counts, microbatches run one by one, which
/// needs the least memory. Pure.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/search/search_request.h"

namespace stagecraft {

struct FirstSchedule {
  Schedule schedule;    ///< a list
  std::string builder;  ///< empty: microbatches one by one
  double makespan = 0;
};

/// Returns the schedule. `graph`: searched_graph(). `row_of`: by stage. `costs`: of these stages.
/// Requires: a request that search_schedule() takes.
[[nodiscard]] FirstSchedule first_schedule(const SearchRequest& request,
                                           const StageGraph& graph,
                                           const std::vector<int>& row_of,
                                           const Costs& costs);

/// Returns a list of these rows. `microbatches`: the number of the step.
[[nodiscard]] Schedule list_of(std::vector<Schedule::Row> rows,
                               const StageGraph& graph,
                               int microbatches);

}  // namespace stagecraft
