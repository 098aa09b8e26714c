/// send_delivery passes a value to a rank that needs it for a call.
#pragma once

#include "stagecraft/actors/remote/wire/message.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// Sends the value, or its error. If it cannot be sent, sends why; never throws. After the close of
/// the end it does nothing, because the call has failed with it.
void send_delivery(Transport& end,
                   Rank to,
                   Epoch generation,
                   DeliveryId delivery,
                   const Delivered& delivered) noexcept;

}  // namespace stagecraft
