/// schedule_search: the schedule of least makespan under a cap on what each device has in flight.
///
/// Starts from the best builder within the cap, then asks OrderSearch for orders that end earlier,
/// and proves that there are none from the other side, until the two meet or the search is stopped.
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

namespace stagecraft {

/// Where stages are that share a device: of 2 devices and 4 stages 0 1 0 1, or 0 1 1 0.
enum class StagePlacement : std::uint8_t { Loop, Wave };

struct SearchRequest {
  int devices = 0;
  int microbatches = 0;
  int chunks = 1;  ///< stages per device
  StagePlacement placement = StagePlacement::Loop;
  bool split = false;  ///< backwards in halves, I and W
  int cap = 0;  ///< most in flight on each device, in stages x microbatches, as simulate() counts
  Costs costs;  ///< of one stage per device, or of the stages they list (cut_costs.h)
  std::size_t states = std::numeric_limits<std::size_t>::max();  ///< to look at, at most
  std::function<bool()> keep_going;  ///< asked now and then; empty: always
};

struct SearchResult {
  Schedule schedule;  ///< a list
  double makespan = 0;
  double bound = 0;  ///< no schedule takes less
  bool optimal = false;
  std::string builder;  ///< which it began with; empty: microbatches one by one
  double builder_makespan = 0;
  std::size_t states = 0;  ///< looked at
};

/// Returns which device has each stage.
[[nodiscard]] std::vector<int> rows_of_stages(int devices, int chunks, StagePlacement placement);

/// Ensures: validate() finds nothing, and no row has more than the cap in flight.
/// Errors: ScheduleParameter for counts below 1, a cap below the stages of a device, tasks that
///         take no time, more than 4096 tasks, and more than 64 kinds of them on a device.
[[nodiscard]] SearchResult search_schedule(const SearchRequest& request);

}  // namespace stagecraft
