/// transport_choice chooses the transport between two places of a network. It is the only code that
/// knows all of them:
///
///   both are in one process       HandOver      the same storage, no copy
///   they are in two processes     PortCarrier   over ZeroMQ, encrypted
///
/// RankPlaces calls it whenever a rank is placed. The ranks of a crew of threads have no other
/// place, so their InprocNetwork does not call it.
#pragma once

#include <memory>

#include "stagecraft/futures/transport/carrier.h"
#include "stagecraft/futures/transport/mailboxes.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

/// NetworkHere is this process's part of a network.
struct NetworkHere {
  std::shared_ptr<DataPort> port;
  NetworkId id;
  std::shared_ptr<const Mailboxes> mailboxes;
};

/// Returns the carrier of tensors from this process to the process that receives at `there`. Admits
/// that process to the port if it is another.
/// Errors: TransportRefused for an invalid address or key.
[[nodiscard]] std::shared_ptr<const Carrier> choose_carrier(const NetworkHere& here,
                                                            const PortAddress& there);

}  // namespace stagecraft
