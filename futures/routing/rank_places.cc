#include "stagecraft/futures/routing/rank_places.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

RankPlaces::RankPlaces(std::shared_ptr<DataPort> port, NetworkId id, int ranks)
    : here_{.port = std::move(port),
            .id = id,
            .mailboxes = std::make_shared<const Mailboxes>(ranks)},
      places_(static_cast<std::size_t>(ranks) + 1,
              Place{.carrier = choose_carrier(here_, here_.port->address()), .elsewhere = {}}) {
  here_.port->attach(here_.id, here_.mailboxes);
}

RankPlaces::~RankPlaces() {
  here_.port->detach(here_.id);
}

std::shared_ptr<const Carrier> RankPlaces::carrier_to(Rank rank) const {
  const std::scoped_lock lock(mutex_);
  return of(rank).carrier;
}

std::optional<std::string> RankPlaces::elsewhere(Rank rank) const {
  const std::scoped_lock lock(mutex_);
  const std::optional<PortAddress>& there = of(rank).elsewhere;
  return there ? std::optional(there->endpoint) : std::nullopt;
}

std::string RankPlaces::host_of(Rank rank) const {
  const std::string endpoint = elsewhere(rank).value_or(here_.port->address().endpoint);
  // "tcp://10.0.0.7:41234"; local sockets are all of one host
  return endpoint.starts_with("tcp://") ? endpoint.substr(0, endpoint.rfind(':')) : "ipc://";
}

void RankPlaces::set(Rank rank, const PortAddress& where) {
  Mailbox& mailbox = here_.mailboxes->of(rank);
  if (where == here_.port->address()) {
    if (elsewhere(rank)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} was in another process and cannot come to this one: make a new "
                              "network",
                              peer_name(rank)));
    }
    return;
  }
  here_.port->place(here_.id, rank, where);  // first: a peer that is admitted may send
  Place place{.carrier = choose_carrier(here_, where), .elsewhere = where};
  {
    const std::scoped_lock lock(mutex_);
    std::swap(places_[index(rank)], place);
  }
  // A process that was given up may live on. A tensor of it that is lost must not end this process
  // (DP-2), and those that wait for it need not wait any longer (DP-3).
  if (place.elsewhere && place.elsewhere->key != where.key) {
    here_.port->forget(*place.elsewhere);
  }
  mailbox.close(Error(Errc::TransportClosed, peer_name(rank) + " is in another process"));
}

const RankPlaces::Place& RankPlaces::of(Rank rank) const {
  static_cast<void>(here_.mailboxes->of(rank));
  return places_[index(rank)];
}

std::size_t RankPlaces::index(Rank rank) {
  return static_cast<std::size_t>(rank.value - kDriver.value);
}

}  // namespace stagecraft
