/// The tags under which setups, state and timelines travel beside the plan, between a rank and the
/// driver.
///
/// DT-1: setup and state belong to an epoch that never ends, so that an abort of a step does not
///       drop a checkpoint; a timeline belongs to its step, and goes with it. A copy that one rank
///       sends another belongs to the epoch of its request, whose end ends the wait for it.
/// DT-2: `request` comes from the ledger, like submissions, and is never used twice.
/// DT-3: edges of plans are counted from 0 and never reach kVariantEdge.
#pragma once

#include <cstddef>
#include <limits>

#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

inline constexpr EdgeId kStateEdge{std::numeric_limits<std::int32_t>::max()};
inline constexpr EdgeId kTimelineEdge{kStateEdge.value - 1};
inline constexpr EdgeId kSetupEdge{kStateEdge.value - 2};
inline constexpr EdgeId kVariantEdge{kStateEdge.value - 3};

/// The tag of the `index`-th tensor of a rank's setup: its bytes first, then its constants.
[[nodiscard]] constexpr Tag setup_tag(PlanId plan, std::size_t index) {
  return {.plan = plan,
          .epoch = kEndlessEpoch,
          .submission = Submission(0),
          .edge = kSetupEdge,
          .microbatch = Microbatch(index)};
}

/// Likewise of what it is told of another shape or evaluation (LoadVariant).
[[nodiscard]] constexpr Tag variant_tag(PlanId plan, Submission request, std::size_t index) {
  return {.plan = plan,
          .epoch = kEndlessEpoch,
          .submission = request,
          .edge = kVariantEdge,
          .microbatch = Microbatch(index)};
}

/// The tag of the `index`-th tensor of a request.
[[nodiscard]] constexpr Tag state_tag(PlanId plan,
                                      Submission request,
                                      std::size_t index,
                                      Epoch epoch = kEndlessEpoch) {
  return {.plan = plan,
          .epoch = epoch,
          .submission = request,
          .edge = kStateEdge,
          .microbatch = Microbatch(index)};
}

/// The tag of a rank's timeline of one step.
[[nodiscard]] constexpr Tag timeline_tag(PlanId plan, Epoch epoch, Submission submission) {
  return {.plan = plan, .epoch = epoch, .submission = submission, .edge = kTimelineEdge};
}

}  // namespace stagecraft
