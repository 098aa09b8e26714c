/// StepValues passes the values that training steps leave on a rank (kept_values.h) from the thread
/// that trains to the rank's actors, which hold them for futures.
///
/// Launchers have one for the ranks of a process. Any thread may use it.
/// SVA-1: what a step leaves on a rank is put once and taken once, in either order.
/// SVA-2: a step that fails puts nothing; its driver fails the futures. A later step of the rank
///       drops what was not put, as a rank runs its steps in order, and tasks' values that nobody
///       has taken.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// The number of the loss, as that of an output of the module.
inline constexpr std::int32_t kLossValue = -1;

/// StepValueName names one value of a step.
struct StepValueName {
  std::int32_t output = kLossValue;
  Microbatch microbatch;

  friend auto operator<=>(const StepValueName&, const StepValueName&) = default;
};

template <class V>
decltype(auto) visit_fields(StepValueName& m, V&& v) {
  return v(m.output, m.microbatch);
}

/// The values of one step on one rank, without autograd graphs. Nobody writes to them any more.
using MadeValues = std::map<StepValueName, at::Tensor>;

class StepValues {
 public:
  struct Place {
    PlanId plan;
    Rank rank;
    Submission submission;
    /// The position of the task in the rank's list that made the values; -1: the step as a whole.
    std::int32_t task = -1;

    friend auto operator<=>(const Place&, const Place&) = default;
  };

  /// The most steps of a rank whose values wait for a taker; older ones are dropped.
  static constexpr std::int64_t kMostWaiting = 1024;

  void put(const Place& place, MadeValues values);
  /// Returns the values, when there are any. Completes with Cancelled if the step failed.
  [[nodiscard]] Future<MadeValues> take(const Place& place);
  /// Drops what waits of a rank that runs no more steps of the plan. What is taken later completes
  /// with Cancelled.
  void end(PlanId plan, Rank rank);

 private:
  struct Entry {
    Promise<MadeValues> values;
    bool is_put = false;
  };

  std::mutex mutex_;
  std::map<Place, Entry> waiting_;
  std::set<std::pair<PlanId, Rank>> ended_;
};

}  // namespace stagecraft
