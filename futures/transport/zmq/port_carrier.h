/// PortCarrier carries the tensors of one network to another process: from the data port of this
/// process to that of the peer.
#pragma once

#include <memory>
#include <utility>

#include "stagecraft/futures/transport/carrier.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

class PortCarrier final : public Carrier {
 public:
  /// Requires: `peer` was admitted to `port`.
  PortCarrier(std::shared_ptr<DataPort> port, NetworkId network, PortAddress peer)
      : port_(std::move(port)), network_(network), peer_(std::move(peer)) {}

  void carry(Rank from, Rank to, const Tag& tag, at::Tensor tensor) const override {
    port_->send(peer_, network_, from, to, tag, std::move(tensor));
  }

  void lend(Rank from, Rank to, const Tag& tag, at::Tensor tensor) const override {
    port_->lend(peer_, network_, from, to, tag, std::move(tensor));
  }

  [[nodiscard]] Route route() const override { return port_->route_to(peer_); }

 private:
  const std::shared_ptr<DataPort> port_;
  const NetworkId network_;
  const PortAddress peer_;
};

}  // namespace stagecraft
