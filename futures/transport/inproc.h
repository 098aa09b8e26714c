/// InprocNetwork: the transport between the driver and ranks that are threads of one process. A
/// tensor is handed over as it is: same storage, no copy, no serialising.
///
/// The launcher of threads makes one for a crew and gives every rank its end; the one-process
/// reference has one of its own. The network and its ends share the mailboxes, so the network
/// object itself may go first. A mailbox is closed by its rank's end (Transport::close), else when
/// the last of them is gone.
#pragma once

#include <memory>

#include "stagecraft/futures/transport/network.h"

namespace stagecraft {

class Mailboxes;

class InprocNetwork final : public Network {
 public:
  /// Ranks 0 to ranks - 1 and the driver.
  explicit InprocNetwork(int ranks);

  /// Returns an end of `rank` (or `kDriver`); all ends of one rank share its mailbox.
  /// Errors: TransportRefused for a rank that is not in this network.
  [[nodiscard]] std::shared_ptr<Transport> endpoint(Rank rank) const override;

 private:
  std::shared_ptr<const Mailboxes> mailboxes_;
};

}  // namespace stagecraft
