/// EventOrder is a barrier: an event of a step comes before another, in addition to the order that
/// the schedule and the data require.
///
///     0F0>1 < 0F1      stage 0 does not compute 0F1 before its result has reached stage 1
///     1F0 < 0F1>1      stage 0 sends 0F1 to stage 1 after stage 1 has used 0F0
///
/// Users state orders, and rules make them (planners/pfeife/phase_barriers.h, channels.h).
/// simulate() and planners keep them. Values. Source: "Pfeife: Automatic Pipeline Parallelism for
/// PyTorch", section 3.2.
#pragma once

#include <compare>
#include <string>

#include "stagecraft/scheduler/costs/operator_cost.h"
#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft {

/// StepEvent is a task, or the transfer of its result to another stage on another row.
struct StepEvent {
  Task task;
  StageId receiver = kNoStage;  ///< kNoStage: the task itself

  [[nodiscard]] bool is_transfer() const { return receiver != kNoStage; }

  friend constexpr auto operator<=>(const StepEvent&, const StepEvent&) = default;
};

/// EventOrder says that `after` starts when `before` has ended.
struct EventOrder {
  StepEvent before;
  StepEvent after;

  friend constexpr bool operator==(const EventOrder&, const EventOrder&) = default;
};

/// Returns "0F1", or "0F1>2" for its transfer to stage 2.
[[nodiscard]] std::string to_string(const StepEvent& event);
/// Returns "0F0>1 < 0F1".
[[nodiscard]] std::string to_string(const EventOrder& order);

}  // namespace stagecraft
