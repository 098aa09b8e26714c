/// remote_tags defines the tags of remote actors, which have a network of their own.
#pragma once

#include "stagecraft/actors/remote/wire/message.h"
#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

/// Returns the tag of a message between the driver and a rank, by its number in its direction.
[[nodiscard]] constexpr Tag message_tag(Epoch generation, std::int64_t number) {
  return {.plan = PlanId(0),
          .epoch = generation,
          .submission = Submission(number),
          .edge = EdgeId(0),
          .microbatch = Microbatch(0)};
}

/// Returns the tag of a value on its way to another rank. No two passings have one number.
[[nodiscard]] constexpr Tag delivery_tag(DeliveryId delivery) {
  return {.plan = PlanId(0),
          .epoch = kEndlessEpoch,
          .submission = Submission(delivery.value),
          .edge = EdgeId(1),
          .microbatch = Microbatch(0)};
}

}  // namespace stagecraft
