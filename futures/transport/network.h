/// Network gives each peer its end of one data plane.
///
/// A crew has one network. The launcher chooses its kind by where the ranks are
/// (actors/launch/launcher.h). Any thread may use it.
#pragma once

#include <memory>

#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class Network {
 public:
  Network(const Network&) = delete;
  Network(Network&&) = delete;
  Network& operator=(const Network&) = delete;
  Network& operator=(Network&&) = delete;
  virtual ~Network() = default;

  /// Returns the end of `rank` (or `kDriver`). It may outlive the network.
  /// Errors: TransportRefused for a rank that is not in this network, or not in this process.
  [[nodiscard]] virtual std::shared_ptr<Transport> endpoint(Rank rank) const = 0;

 protected:
  Network() = default;
};

}  // namespace stagecraft
