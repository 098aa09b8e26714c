/// schedule_search: the schedule of least makespan under a cap on what each device has in flight.
///
/// Starts from the best builder within the cap, then has Narrowing look for orders that end earlier
/// and prove that there are none from the other side, until the two meet or the search is stopped.
/// So the answer is an optimum, or the best found with a bound and the gap between them. Pure; what
/// it may take, in states or by a clock, is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// Where stages are that share a device: of 2 devices and 4 stages 0 1 0 1, or 0 1 1 0. Replicas
/// are two copies of the model, 0 1 and 1 0, each for half of the microbatches.
enum class StagePlacement : std::uint8_t { Loop, Wave, Replicas };

/// What a search knows of the least makespan so far.
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
  std::size_t states = std::numeric_limits<std::size_t>::max();  ///< to look at, at most
  /// Asked now and then; false ends the search. Empty: always.
  std::function<bool(const SearchProgress&)> keep_going;
};

struct SearchResult {
  Schedule schedule;  ///< a list
  double makespan = 0;
  double bound = 0;      ///< no schedule takes less
  bool optimal = false;  ///< to a tick (search_problem.h) where times are rounded
  std::string builder;   ///< which it began with; empty: microbatches one by one
  double builder_makespan = 0;
  std::size_t states = 0;  ///< looked at
};

/// Returns the stages that the request asks for.
[[nodiscard]] StageGraph searched_graph(const SearchRequest& request);

/// Returns which device has each of them.
[[nodiscard]] std::vector<int> rows_of_stages(const SearchRequest& request);

/// Ensures: validate() finds nothing, and no row has more than the cap in flight.
/// Errors: ScheduleParameter for counts below 1, a cap below the stages of a device, tasks that
///         take no time, replicas of several chunks or of an odd number of microbatches, more
///         than 4096 tasks, and more than 64 kinds of them on a device.
[[nodiscard]] SearchResult search_schedule(const SearchRequest& request);

}  // namespace stagecraft
