#include "stagecraft/actors/remote/wire/delivery.h"

#include <exception>

#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/remote/wire/payload_transfer.h"
#include "stagecraft/actors/remote/wire/remote_tags.h"
#include "stagecraft/base/log.h"

namespace stagecraft {

void send_delivery(Transport& end,
                   Rank to,
                   Epoch generation,
                   DeliveryId delivery,
                   const Delivered& delivered) noexcept {
  const Tag tag = delivery_tag(to, generation, delivery);
  try {
    try {
      send_payload(end, to, tag, pack(delivered));
    } catch (...) {
      const Error error = foreign_error(std::current_exception());
      if (error.code() != Errc::TransportClosed) {
        send_payload(end, to, tag, pack(Delivered{.error = to_chain(error), .value = {}}));
      }
    }
  } catch (const std::exception& error) {
    log(Level::Error, "a value was not sent", {{"why", error.what()}});
  }
}

}  // namespace stagecraft
