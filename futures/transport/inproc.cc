#include "stagecraft/futures/transport/inproc.h"

#include <utility>

#include "stagecraft/futures/transport/hand_over.h"
#include "stagecraft/futures/transport/mailbox_transport.h"

namespace stagecraft {
namespace {

class InprocTransport final : public MailboxTransport {
 public:
  InprocTransport(Rank self, std::shared_ptr<const Mailboxes> mailboxes)
      : MailboxTransport(self, mailboxes), hand_over_(std::move(mailboxes)) {}

  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    check_send(to, tag, tensor);
    hand_over_.carry(self(), to, tag, std::move(tensor));
  }
  [[nodiscard]] bool hands_over(Rank /*to*/) const override { return true; }
  [[nodiscard]] Route route_to(Rank /*to*/) const override { return Route::HandOver; }

 private:
  HandOver hand_over_;
};

}  // namespace

InprocNetwork::InprocNetwork(int ranks) : mailboxes_(std::make_shared<const Mailboxes>(ranks)) {}

std::shared_ptr<Transport> InprocNetwork::endpoint(Rank rank) const {
  return std::make_shared<InprocTransport>(rank, mailboxes_);
}

}  // namespace stagecraft
