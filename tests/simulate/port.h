/// Port is the data port of a simulated process: its tensors travel over the simulated network.
///
/// The crews' networks and ends on it are those of the library (RoutedNetwork). It keeps what the
/// real port keeps beside that: it takes from and gives to admitted ports alone, and takes a rank's
/// tensors from the port of the rank's process (DP-9). Ports are found by their keys.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/futures/transport/zmq/attached_networks.h"
#include "stagecraft/futures/transport/zmq/data_port.h"
#include "stagecraft/tests/simulate/network.h"

namespace stagecraft::simulation {

class Port;

/// Ports holds the ports of all processes so far, by their keys.
using Ports = std::map<std::string, std::weak_ptr<Port>>;

class Port final : public DataPort, public std::enable_shared_from_this<Port> {
 public:
  /// Views the network.
  Port(Network& network, std::shared_ptr<Ports> all, ProcessNumber process, std::string key)
      : network_(network),
        all_(std::move(all)),
        process_(process),
        address_{.endpoint = "ipc://simulated", .key = std::move(key)} {}

  /// Opens the port of a process.
  [[nodiscard]] static std::shared_ptr<Port> open(Network& network,
                                                  const std::shared_ptr<Ports>& all,
                                                  ProcessNumber process);

  [[nodiscard]] ProcessNumber process() const { return process_; }
  /// Returns whether this one takes the tensors of the other.
  [[nodiscard]] bool has_admitted(const Port& other) const {
    return admitted_.contains(other.address_.key);
  }
  /// Returns the bytes of tensors that have arrived and that nobody has received.
  [[nodiscard]] std::int64_t bytes_waiting() const;
  /// Ends the waits for tensors that arrive here, as the process ends.
  void abandon(const Error& why) const;

  [[nodiscard]] const PortAddress& address() const override { return address_; }
  void admit(const PortAddress& peer) override { admitted_.insert(peer.key); }
  void forget(const PortAddress& peer) override { admitted_.erase(peer.key); }
  void send(const PortAddress& peer,
            NetworkId network,
            Rank from,
            Rank to,
            const Tag& tag,
            at::Tensor tensor) override;
  void lend(const PortAddress& peer,
            NetworkId network,
            Rank from,
            Rank to,
            const Tag& tag,
            at::Tensor tensor) override {
    send(peer, network, from, to, tag, std::move(tensor));
  }
  [[nodiscard]] at::Tensor lendable(std::int64_t elements, at::ScalarType dtype) override;
  [[nodiscard]] Route route_to(const PortAddress&) const override { return Route::Socket; }
  void attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes) override;
  void detach(NetworkId network) override { networks_.detach(network); }
  void place(NetworkId network, Rank rank, const PortAddress& peer) override {
    networks_.place(network, rank, peer.key);
  }
  void tidy() override {}
  [[nodiscard]] PortCounts counts() const override { return {}; }
  void close() override {}

 private:
  Network& network_;
  const std::shared_ptr<Ports> all_;
  const ProcessNumber process_;
  const PortAddress address_;
  std::set<std::string> admitted_;
  AttachedNetworks networks_;
  std::vector<std::weak_ptr<const Mailboxes>> mailboxes_;
};

}  // namespace stagecraft::simulation
