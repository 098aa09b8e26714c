/// payload_transfer sends and receives payloads over a transport.
#pragma once

#include <functional>
#include <memory>

#include "stagecraft/actors/remote/wire/payload.h"
#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// Sends the payload's bytes under the tag, and its tensors under the microbatches after that.
/// Errors: those of Transport::send; then the tag is still free for a payload without tensors.
void send_payload(Transport& end, Rank to, const Tag& tag, Payload payload);

/// Receives a payload that send_payload sends.
/// Errors, in the future: those of Transport::receive; WireFormat.
[[nodiscard]] Future<Payload> receive_payload(const std::shared_ptr<Transport>& end,
                                              Rank from,
                                              const Tag& tag);

}  // namespace stagecraft
