#include "stagecraft/futures/transport/mailbox_transport.h"

#include <fmt/format.h>

namespace stagecraft {

void MailboxTransport::check_send(Rank to, const Tag& tag, const at::Tensor& tensor) const {
  own_.check_open();
  static_cast<void>(mailboxes_->of(to));
  if (!tensor.defined()) {
    throw Error(Errc::TransportRefused,
                fmt::format("cannot send an undefined tensor to {} as {}: send zeros where "
                            "there is no value",
                            peer_name(to),
                            to_string(tag)));
  }
}

}  // namespace stagecraft
