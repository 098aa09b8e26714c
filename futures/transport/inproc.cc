#include "stagecraft/futures/transport/inproc.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/futures/transport/inproc_mailbox.h"

namespace stagecraft {
namespace {

using Mailboxes = std::vector<std::unique_ptr<InprocMailbox>>;

/// The driver's mailbox is the first, rank r's the one at r + 1.
InprocMailbox& mailbox_of(const Mailboxes& mailboxes, Rank rank) {
  const auto at = static_cast<std::size_t>(rank.value - kDriver.value);
  if (rank < kDriver || at >= mailboxes.size()) {
    throw Error(Errc::TransportRefused,
                fmt::format("rank {} is no peer here: expected the driver or a rank from 0 to {}",
                            rank.value,
                            static_cast<int>(mailboxes.size()) - 2));
  }
  return *mailboxes[at];
}

class InprocTransport final : public Transport {
 public:
  InprocTransport(Rank self, std::shared_ptr<const Mailboxes> mailboxes)
      : self_(self), mailboxes_(std::move(mailboxes)), own_(mailbox_of(*mailboxes_, self)) {}

  [[nodiscard]] Rank self() const override { return self_; }

  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    own_.check_open();
    InprocMailbox& mailbox = mailbox_of(*mailboxes_, to);
    if (!tensor.defined()) {
      throw Error(Errc::TransportRefused,
                  fmt::format("an undefined tensor was to be sent to {} as {}: send zeros "
                              "where there is no value",
                              peer_name(to),
                              to_string(tag)));
    }
    mailbox.deliver(self_, tag, std::move(tensor));
  }

  [[nodiscard]] Future<at::Tensor> receive(Rank from, const Tag& tag) override {
    static_cast<void>(mailbox_of(*mailboxes_, from));
    return own_.receive(from, tag);
  }

  void advance(PlanId plan, Epoch current, const Error& why) override {
    own_.advance(plan, current, why);
  }
  void require_current(PlanId plan, Epoch epoch) const override {
    own_.require_current(plan, epoch);
  }
  [[nodiscard]] std::uint64_t refused() const override { return own_.refused(); }
  [[nodiscard]] std::int64_t bytes_waiting() const override { return own_.bytes_waiting(); }
  void close(const Error& why) override { own_.close(why); }

 private:
  Rank self_;
  std::shared_ptr<const Mailboxes> mailboxes_;
  InprocMailbox& own_;
};

}  // namespace

InprocNetwork::InprocNetwork(int ranks) {
  SC_CHECK(ranks >= 0, "a network cannot have " + std::to_string(ranks) + " ranks");
  Mailboxes mailboxes;
  for (int i = 0; i < ranks + 1; ++i) {
    mailboxes.push_back(std::make_unique<InprocMailbox>());
  }
  mailboxes_ = std::make_shared<const Mailboxes>(std::move(mailboxes));
}

std::shared_ptr<Transport> InprocNetwork::endpoint(Rank rank) const {
  return std::make_shared<InprocTransport>(rank, mailboxes_);
}

}  // namespace stagecraft
