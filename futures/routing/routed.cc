#include "stagecraft/futures/routing/routed.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/routing/rank_places.h"
#include "stagecraft/futures/transport/mailbox_transport.h"

namespace stagecraft {
namespace {

class RoutedTransport final : public MailboxTransport {
 public:
  RoutedTransport(Rank self, std::shared_ptr<RankPlaces> places)
      : MailboxTransport(self, places->here().mailboxes), places_(std::move(places)) {}

  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    check_send(to, tag, tensor);
    places_->carrier_to(to)->carry(self(), to, tag, std::move(tensor));
  }

  void lend(Rank to, const Tag& tag, at::Tensor tensor) override {
    check_send(to, tag, tensor);
    places_->carrier_to(to)->lend(self(), to, tag, std::move(tensor));
  }

  [[nodiscard]] at::Tensor lendable(std::int64_t elements, at::ScalarType dtype) override {
    return places_->here().port->lendable(elements, dtype);
  }

  [[nodiscard]] bool hands_over(Rank to) const override { return !places_->elsewhere(to); }
  [[nodiscard]] std::string host_of(Rank rank) const override { return places_->host_of(rank); }
  [[nodiscard]] Route route_to(Rank to) const override { return places_->carrier_to(to)->route(); }

  void advance(PlanId plan, Epoch current, const Error& why) override {
    MailboxTransport::advance(plan, current, why);
    places_->here().port->tidy();
  }

  void close(const Error& why) override {
    MailboxTransport::close(why);
    places_->here().port->tidy();
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
  if (const auto elsewhere = places_->elsewhere(rank)) {
    throw Error(
        Errc::TransportRefused,
        fmt::format(
            "{} is in the process of {}, so it has no end here", peer_name(rank), *elsewhere));
  }
  return std::make_shared<RoutedTransport>(rank, places_);
}

}  // namespace stagecraft
