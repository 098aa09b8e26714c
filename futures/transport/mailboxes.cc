#include "stagecraft/futures/transport/mailboxes.h"

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

Mailboxes::Mailboxes(int ranks) {
  SC_CHECK(ranks >= 0, "a network cannot have " + std::to_string(ranks) + " ranks");
  for (int i = 0; i < ranks + 1; ++i) {
    mailboxes_.push_back(std::make_unique<Mailbox>());
  }
}

Mailbox& Mailboxes::of(Rank rank) const {
  Mailbox* const mailbox = find(rank);
  if (mailbox == nullptr) {
    throw Error(
        Errc::TransportRefused,
        fmt::format("rank {} is not a peer here: expected the driver or a rank from 0 to {}",
                    rank.value,
                    ranks() - 1));
  }
  return *mailbox;
}

Mailbox* Mailboxes::find(Rank rank) const {
  if (rank < kDriver || rank.value >= ranks()) {
    return nullptr;
  }
  return mailboxes_[static_cast<std::size_t>(rank.value - kDriver.value)].get();
}

}  // namespace stagecraft
