#include "stagecraft/futures/routing/routed.h"

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/futures/transport/mailbox_transport.h"

namespace stagecraft {

/// Shared by the network and its ends; the last of them detaches the network from the port.
class RankPlaces {
 public:
  RankPlaces(std::shared_ptr<DataPort> port, NetworkId id, int ranks)
      : port_(std::move(port)),
        id_(id),
        mailboxes_(std::make_shared<const Mailboxes>(ranks)),
        places_(static_cast<std::size_t>(ranks) + 1) {
    port_->attach(id_, mailboxes_);
  }
  RankPlaces(const RankPlaces&) = delete;
  RankPlaces(RankPlaces&&) = delete;
  RankPlaces& operator=(const RankPlaces&) = delete;
  RankPlaces& operator=(RankPlaces&&) = delete;
  ~RankPlaces() { port_->detach(id_); }

  [[nodiscard]] DataPort& port() const { return *port_; }
  [[nodiscard]] NetworkId id() const { return id_; }
  [[nodiscard]] const std::shared_ptr<const Mailboxes>& mailboxes() const { return mailboxes_; }

  /// Returns null for a rank of this process.
  [[nodiscard]] std::shared_ptr<const PortAddress> of(Rank rank) const {
    const std::scoped_lock lock(mutex_);
    return places_[index(rank)];
  }

  void set(Rank rank, const PortAddress& where) {
    Mailbox& mailbox = mailboxes_->of(rank);
    if (where == port_->address()) {
      if (of(rank) != nullptr) {
        throw Error(Errc::UsageArgument,
                    fmt::format("{} was in another process and cannot come to this one: make a new "
                                "network",
                                peer_name(rank)));
      }
      return;
    }
    port_->admit(where);
    {
      const std::scoped_lock lock(mutex_);
      places_[index(rank)] = std::make_shared<const PortAddress>(where);
    }
    mailbox.close(Error(Errc::TransportClosed, peer_name(rank) + " is in another process"));
  }

 private:
  static std::size_t index(Rank rank) {
    return static_cast<std::size_t>(rank.value - kDriver.value);
  }

  const std::shared_ptr<DataPort> port_;
  const NetworkId id_;
  const std::shared_ptr<const Mailboxes> mailboxes_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const PortAddress>> places_;
};

namespace {

class RoutedTransport final : public MailboxTransport {
 public:
  RoutedTransport(Rank self, std::shared_ptr<RankPlaces> places)
      : MailboxTransport(self, places->mailboxes()), places_(std::move(places)) {}

  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    check_send(to, tag, tensor);
    if (const auto where = places_->of(to)) {
      places_->port().send(*where, places_->id(), self(), to, tag, std::move(tensor));
    } else {
      mailboxes().of(to).deliver(self(), tag, std::move(tensor));
    }
  }

  void advance(PlanId plan, Epoch current, const Error& why) override {
    MailboxTransport::advance(plan, current, why);
    places_->port().tidy();
  }

  void close(const Error& why) override {
    MailboxTransport::close(why);
    places_->port().tidy();
  }

 private:
  std::shared_ptr<RankPlaces> places_;
};

}  // namespace

RoutedNetwork::RoutedNetwork(std::shared_ptr<DataPort> port, NetworkId id, int ranks)
    : places_(std::make_shared<RankPlaces>(std::move(port), id, ranks)) {}

void RoutedNetwork::place(Rank rank, const PortAddress& where) {
  places_->set(rank, where);
}

std::shared_ptr<Transport> RoutedNetwork::endpoint(Rank rank) const {
  static_cast<void>(places_->mailboxes()->of(rank));
  if (const auto where = places_->of(rank)) {
    throw Error(
        Errc::TransportRefused,
        fmt::format(
            "{} is in the process of {}, so it has no end here", peer_name(rank), where->endpoint));
  }
  return std::make_shared<RoutedTransport>(rank, places_);
}

}  // namespace stagecraft
