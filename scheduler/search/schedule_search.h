/// schedule_search finds the schedule of least makespan under a cap on the activations that each
/// device has in flight.
///
/// It starts from the best builder within the cap. Narrowing then looks for orders that end
/// earlier, and for proofs that there are none. It ends when the two meet or the search is stopped.
/// So the answer is an optimum, or the best schedule found with a bound. Pure; the caller limits it
/// by states or by a clock.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/search/search_request.h"

namespace stagecraft {

struct SearchResult {
  Schedule schedule;  ///< a list
  double makespan = 0;
  double bound = 0;      ///< no schedule takes less
  bool optimal = false;  ///< to a tick (search_problem.h) if times are rounded
  std::string builder;   ///< the start of the search; empty: microbatches one by one
  double builder_makespan = 0;
  std::size_t states = 0;  ///< visited
};

/// Returns the stages that the request describes.
[[nodiscard]] StageGraph searched_graph(const SearchRequest& request);

/// Returns the device of each of these stages.
[[nodiscard]] std::vector<int> rows_of_stages(const SearchRequest& request);

/// Returns the best schedule found.
/// Ensures: validate() finds nothing, and no row has more than the cap in flight.
/// Errors: ScheduleParameter for counts below 1, a cap below the stages of a device, tasks that
/// take no time, replicas of several chunks or of an odd number of microbatches, more than 4096
/// tasks, and more than 64 kinds of tasks on a device.
[[nodiscard]] SearchResult search_schedule(const SearchRequest& request);

}  // namespace stagecraft
