/// transport_choice is the table of all transports, and chooses one for each two places of a
/// network:
///
///   both are in one process       HandOver      the same storage, no copy
///   they are in two processes     PortCarrier   over ZeroMQ, encrypted; on one host through
///                                               shared memory
///
/// RankPlaces calls it whenever a rank is placed. The ranks of a crew of threads have no other
/// place, so their InprocNetwork does not call it. A new transport is one row; the conformance
/// suite fails for a row that no network of its uses.
#pragma once

#include <memory>
#include <span>
#include <string_view>

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

struct TransportRow {
  std::string_view name;
  bool (*reaches)(const PortAddress& here, const PortAddress& there);
  /// Requires: it reaches `there` from `here`.
  std::shared_ptr<const Carrier> (*carrier)(const NetworkHere& here, const PortAddress& there);
};

/// Returns all rows. The first one that reaches a place is used.
[[nodiscard]] std::span<const TransportRow> all_transports();

/// Returns the transport from the process that receives at `here` to the one at `there`.
[[nodiscard]] const TransportRow& transport_between(const PortAddress& here,
                                                    const PortAddress& there);

/// Returns the carrier of tensors from this process to the process that receives at `there`. Admits
/// that process to the port if it is another.
/// Errors: TransportRefused for an invalid address or key.
[[nodiscard]] std::shared_ptr<const Carrier> choose_carrier(const NetworkHere& here,
                                                            const PortAddress& there);

}  // namespace stagecraft
