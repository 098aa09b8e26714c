/// remote_tags defines the tags of remote actors, which have a network of their own.
///
/// RX-1: all tags of one rank's side have the rank's number as plan and its generation as epoch. So
///       the end of that epoch ends all that is on its way to the side. A successor gets nothing
///       of it.
#pragma once

#include "stagecraft/actors/remote/wire/message.h"
#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

[[nodiscard]] constexpr PlanId plan_of_side(Rank rank) {
  return PlanId(rank.value);
}

/// Returns the tag of a message between the driver and a rank, by its number in its direction.
[[nodiscard]] constexpr Tag message_tag(Rank rank, Epoch generation, std::int64_t number) {
  return {.plan = plan_of_side(rank),
          .epoch = generation,
          .submission = Submission(number),
          .edge = EdgeId(0),
          .microbatch = Microbatch(0)};
}

/// Returns the tag of a value on its way to a rank. No two passings have one number.
[[nodiscard]] constexpr Tag delivery_tag(Rank to, Epoch generation, DeliveryId delivery) {
  return {.plan = plan_of_side(to),
          .epoch = generation,
          .submission = Submission(delivery.value),
          .edge = EdgeId(1),
          .microbatch = Microbatch(0)};
}

}  // namespace stagecraft
