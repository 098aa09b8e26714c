/// SearchRequest says which schedules a search may choose from, their costs, and how long the
/// search may take. A value; the caller's function runs on the thread of the search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft {

/// StagePlacement places stages that share a device. For 2 devices and 4 stages, Loop is 0 1 0 1,
/// Wave is 0 1 1 0. Replicas are two copies of the model, 0 1 and 1 0, each for half of the
/// microbatches.
enum class StagePlacement : std::uint8_t { Loop, Wave, Replicas };

/// SearchProgress holds the current bounds of the least makespan.
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
  /// Called from time to time; false ends the search. Empty: never ends it.
  std::function<bool(const SearchProgress&)> keep_going;
};

}  // namespace stagecraft
