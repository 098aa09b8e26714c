/// MailboxTransport is the end of a rank that receives from its mailbox. The ends of a network
/// derive from it and send through a Carrier.
#pragma once

#include <memory>
#include <utility>

#include "stagecraft/futures/transport/mailboxes.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class MailboxTransport : public Transport {
 public:
  [[nodiscard]] Rank self() const final { return self_; }
  [[nodiscard]] Future<at::Tensor> receive(Rank from, const Tag& tag) final {
    static_cast<void>(mailboxes_->of(from));
    return own_.receive(from, tag);
  }
  void advance(PlanId plan, Epoch current, const Error& why) override {
    own_.advance(plan, current, why);
  }
  void require_current(PlanId plan, Epoch epoch) const final { own_.require_current(plan, epoch); }
  [[nodiscard]] std::uint64_t refused() const final { return own_.refused(); }
  [[nodiscard]] std::int64_t bytes_waiting() const final { return own_.bytes_waiting(); }
  void close(const Error& why) override { own_.close(why); }

 protected:
  /// Errors: TransportRefused for a rank that is not in the network.
  MailboxTransport(Rank self, std::shared_ptr<const Mailboxes> mailboxes)
      : self_(self), mailboxes_(std::move(mailboxes)), own_(mailboxes_->of(self)) {}

  /// Checks the arguments of every send.
  /// Errors: TransportClosed if this end is closed; TransportRefused for a rank that is no peer or
  /// a tensor that is undefined.
  void check_send(Rank to, const Tag& tag, const at::Tensor& tensor) const;

 private:
  Rank self_;
  std::shared_ptr<const Mailboxes> mailboxes_;
  Mailbox& own_;
};

}  // namespace stagecraft
