#include "stagecraft/futures/transport/zmq/attached_networks.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

void AttachedNetworks::attach(NetworkId network,
                              const std::shared_ptr<const Mailboxes>& mailboxes) {
  const std::scoped_lock lock(mutex_);
  Attached& place = networks_[network];
  if (!place.mailboxes.expired()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the data port already has a network {}: give each crew an id of its "
                            "own",
                            network.value));
  }
  place = {.mailboxes = mailboxes, .keys = {}};
}

void AttachedNetworks::detach(NetworkId network) {
  const std::scoped_lock lock(mutex_);
  networks_.erase(network);
  ended_.insert(network);
}

bool AttachedNetworks::has_ended(NetworkId network) const {
  const std::scoped_lock lock(mutex_);
  return ended_.contains(network);
}

std::shared_ptr<const Mailboxes> AttachedNetworks::find(NetworkId network) const {
  const std::scoped_lock lock(mutex_);
  const auto found = networks_.find(network);
  return found == networks_.end() ? nullptr : found->second.mailboxes.lock();
}

void AttachedNetworks::place(NetworkId network, Rank rank, const std::string& key) {
  const std::scoped_lock lock(mutex_);
  networks_[network].keys[rank] = key;
}

bool AttachedNetworks::is_at(NetworkId network, Rank rank, const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = networks_.find(network);
  if (found == networks_.end()) {
    return false;
  }
  const auto known = found->second.keys.find(rank);
  return known != found->second.keys.end() && known->second == key;
}

}  // namespace stagecraft
