/// Mailboxes holds the mailboxes of the driver and the ranks of one network within one process.
///
/// A network and its ends share it. It never changes after construction; each mailbox guards
/// itself.
#pragma once

#include <memory>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/transport/mailbox.h"

namespace stagecraft {

class Mailboxes {
 public:
  /// Makes mailboxes for ranks 0 to ranks - 1 and the driver.
  explicit Mailboxes(int ranks);

  /// Returns the mailbox of the rank. Errors: TransportRefused for a rank that is not in the
  /// network.
  [[nodiscard]] Mailbox& of(Rank rank) const;
  /// Returns the mailbox of the rank; null for a rank that is not in the network.
  [[nodiscard]] Mailbox* find(Rank rank) const;
  [[nodiscard]] int ranks() const { return static_cast<int>(mailboxes_.size()) - 1; }

 private:
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  ///< the driver's first, rank r's at r + 1
};

}  // namespace stagecraft
