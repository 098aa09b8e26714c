/// data_tags defines the tags of setups, state and timelines, which travel beside the plan's
/// tensors between a rank and the driver.
///
/// DT-1: setups belong to an epoch that never ends. State that is read or written has a plan of its
///       own, in which each request is an epoch (StateRequest): the abort of a step does not drop a
///       checkpoint, and what of a request comes after its end is dropped. A timeline belongs to
///       its step and is dropped with it. A copy that one rank sends another belongs to the crew's
///       epoch: the end of that epoch ends the wait for the copy.
/// DT-2: `request` comes from the ledger, as submissions do, and is never used twice.
/// DT-3: edges of plans are counted from 0 and never reach kShapeEdge.
#pragma once

#include <cstddef>
#include <limits>

#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

inline constexpr EdgeId kStateEdge{std::numeric_limits<std::int32_t>::max()};
inline constexpr EdgeId kTimelineEdge{kStateEdge.value - 1};
inline constexpr EdgeId kSetupEdge{kStateEdge.value - 2};
inline constexpr EdgeId kShapeEdge{kStateEdge.value - 3};

/// Returns the tag of the `index`-th tensor of a rank's setup: its bytes come first, then its
/// constants.
[[nodiscard]] constexpr Tag setup_tag(PlanId plan, std::size_t index) {
  return {.plan = plan,
          .epoch = kEndlessEpoch,
          .submission = Submission(0),
          .edge = kSetupEdge,
          .microbatch = Microbatch(index)};
}

/// Returns likewise the tag for another shape or evaluation (LoadShape).
[[nodiscard]] constexpr Tag shape_tag(PlanId plan, Submission request, std::size_t index) {
  return {.plan = plan,
          .epoch = kEndlessEpoch,
          .submission = request,
          .edge = kShapeEdge,
          .microbatch = Microbatch(index)};
}

/// Returns the plan of the state that is read and written. Any other bits will do, since plan ids
/// are random.
[[nodiscard]] constexpr PlanId plan_of_states(PlanId plan) {
  return PlanId(plan.value ^ 0x7374617465);
}

/// Returns the tag of the `index`-th tensor of a request.
[[nodiscard]] constexpr Tag state_tag(PlanId plan, Submission request, std::size_t index) {
  return {.plan = plan_of_states(plan),
          .epoch = Epoch(request.value),
          .submission = request,
          .edge = kStateEdge,
          .microbatch = Microbatch(index)};
}

/// Returns the tag of a copy that one rank sends another.
[[nodiscard]] constexpr Tag copy_tag(PlanId plan, Submission request, Epoch epoch) {
  return {.plan = plan,
          .epoch = epoch,
          .submission = request,
          .edge = kStateEdge,
          .microbatch = Microbatch(0)};
}

/// Returns the tag of a rank's timeline of one step.
[[nodiscard]] constexpr Tag timeline_tag(PlanId plan, Epoch epoch, Submission submission) {
  return {.plan = plan, .epoch = epoch, .submission = submission, .edge = kTimelineEdge};
}

}  // namespace stagecraft
