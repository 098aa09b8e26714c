/// EventOrder: something in a step comes before something else, besides what the schedule and the
/// data ask for: a barrier.
///
///     0F0>1 < 0F1      stage 0 computes no further until what it made has reached stage 1
///     1F0 < 0F1>1      nothing more is sent to stage 1 until it has used what it has
///
/// Given by people, or made by rules (planners/pfeife/phase_barriers.h, channels.h); kept by
/// simulate() and by planners. Values. Source: "Pfeife: Automatic Pipeline Parallelism for
/// PyTorch", section 3.2.
#pragma once

#include <compare>
#include <string>

#include "stagecraft/scheduler/cell.h"
#include "stagecraft/scheduler/operator_cost.h"

namespace stagecraft {

/// A task, or the way of what it made to another stage, on another row.
struct StepEvent {
  Task task;
  StageId receiver = kNoStage;  ///< none: the task itself

  [[nodiscard]] bool is_transfer() const { return receiver != kNoStage; }

  friend constexpr auto operator<=>(const StepEvent&, const StepEvent&) = default;
};

/// `after` starts when `before` has ended.
struct EventOrder {
  StepEvent before;
  StepEvent after;

  friend constexpr bool operator==(const EventOrder&, const EventOrder&) = default;
};

/// Returns "0F1", or "0F1>2" for its way to stage 2.
[[nodiscard]] std::string to_string(const StepEvent& event);
/// Returns "0F0>1 < 0F1".
[[nodiscard]] std::string to_string(const EventOrder& order);

}  // namespace stagecraft
