#include "stagecraft/futures/transport/zmq/peers.h"

#include <utility>

namespace stagecraft {

bool Peers::add(const PortAddress& address) {
  const std::scoped_lock lock(mutex_);
  if (closed_ || peers_.contains(address.key)) {
    return false;
  }
  peers_[address.key] =
      std::make_shared<Peer>(address, ++links_, options_, sockets_, counter_, lent_);
  return true;
}

std::shared_ptr<Peer> Peers::remove(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  auto found = peers_.extract(key);
  return found.empty() ? nullptr : std::move(found.mapped());
}

std::shared_ptr<Peer> Peers::find(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = peers_.find(key);
  return found == peers_.end() ? nullptr : found->second;
}

bool Peers::contains(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  return peers_.contains(key);
}

Peers::All Peers::all() const {
  const std::scoped_lock lock(mutex_);
  All all;
  all.reserve(peers_.size());
  for (const auto& [key, peer] : peers_) {
    all.push_back(peer);
  }
  return all;
}

Peers::All Peers::close() {
  All all = this->all();
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  peers_.clear();
  return all;
}

}  // namespace stagecraft
