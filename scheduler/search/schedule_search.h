/// schedule_search finds the schedule of least makespan under a cap on the activations that each
/// device has in flight.
///
/// It starts from the best builder within the cap. Narrowing then looks for orders that end earlier
/// and for proofs that there are none, until the two meet or the search is stopped. So the answer
/// is an optimum, or the best schedule found with a bound. Pure; the caller limits it by states or
/// by a clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// The places of stages that share a device: for 2 devices and 4 stages, Loop is 0 1 0 1, Wave is 0
/// 1 1 0. Replicas are two copies of the model, 0 1 and 1 0, each for half of the microbatches.
enum class StagePlacement : std::uint8_t { Loop, Wave, Replicas };

/// The current bounds of the least makespan.
struct SearchProgress {
  double bound = 0;     ///< no schedule takes less
  double makespan = 0;  ///< of the best found
};

struct SearchRequest {
  int devices = 0;
  int microbatches = 0;
  int chunks = 1;  ///< stages per device, of each copy of the model
  StagePlacement placement = StagePlacement::Loop;
  bool split = false;  ///< backwards in halves, I and W
  int cap = 0;  ///< most in flight on each device, in stages x microbatches, as simulate() counts
  Costs costs;  ///< of one stage per device, or of the stages they list (cut_costs.h)
  std::size_t states = std::numeric_limits<std::size_t>::max();  ///< the most states to visit
  /// Called now and then; false ends the search. Empty: never ends it.
  std::function<bool(const SearchProgress&)> keep_going;
};

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

/// Returns the device of each of them.
[[nodiscard]] std::vector<int> rows_of_stages(const SearchRequest& request);

/// Ensures: validate() finds nothing, and no row has more than the cap in flight.
/// Errors: ScheduleParameter for counts below 1, a cap below the stages of a device, tasks that
/// take no time, replicas of several chunks or of an odd number of microbatches, more than 4096
/// tasks, and more than 64 kinds of tasks on a device.
[[nodiscard]] SearchResult search_schedule(const SearchRequest& request);

}  // namespace stagecraft
