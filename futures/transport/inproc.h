/// InprocNetwork is the transport between the driver and ranks that are threads of one process. It
/// hands a tensor over as it is: same storage, no copy, no serialization.
///
/// The launcher of threads makes one for a crew and gives every rank its end. The one-process
/// reference has one of its own. The network and its ends share the mailboxes, so the network may
/// be destroyed first. A rank's end closes its mailbox (Transport::close); otherwise the mailbox
/// closes with the last end.
#pragma once

#include <memory>

#include "stagecraft/futures/transport/network.h"

namespace stagecraft {

class Mailboxes;

class InprocNetwork final : public Network {
 public:
  /// Makes mailboxes for ranks 0 to ranks - 1 and the driver.
  explicit InprocNetwork(int ranks);

  /// Returns an end of `rank` (or `kDriver`); all ends of one rank share its mailbox.
  /// Errors: TransportRefused for a rank that is not in this network.
  [[nodiscard]] std::shared_ptr<Transport> endpoint(Rank rank) const override;

 private:
  std::shared_ptr<const Mailboxes> mailboxes_;
};

}  // namespace stagecraft
