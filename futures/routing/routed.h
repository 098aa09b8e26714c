/// RoutedNetwork is the data plane of a crew whose ranks live in several processes. Each end
/// chooses the way by the peer's place: it hands over a tensor for this process as it is, and gives
/// any other to the DataPort.
///
/// Each process of the crew makes one, with the same id, and places the ranks that live elsewhere.
/// Every process makes it before any rank sends: tensors for an unknown network are dropped and
/// counted. Any thread may use it; the mutex guards the places.
/// RN-1: a send goes to the rank's place at the time of the call, so tensors sent after a worker's
///       replacement go to its successor.
#pragma once

#include <memory>

#include "stagecraft/futures/transport/network.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

class RankPlaces;

class RoutedNetwork final : public Network {
 public:
  /// Makes mailboxes for ranks 0 to ranks - 1 and the driver; all are in this process until they
  /// are placed.
  /// Errors: UsageArgument if the port has a network of that id.
  RoutedNetwork(std::shared_ptr<DataPort> port, NetworkId id, int ranks);

  /// Places `rank` (or `kDriver`) in the process of that port, and admits the port. All processes
  /// give the same address, that of DataPort::address(): its host decides how sums go (host_of).
  /// May be called again after a replacement, and then forgets the port of the predecessor.
  /// Errors: TransportRefused for a rank that is not in this network, and for an invalid address;
  /// UsageArgument for a rank that was elsewhere and now should be here.
  void place(Rank rank, const PortAddress& where);

  /// Returns the end of `rank`. Errors: TransportRefused for a rank that is not in this network, or
  /// not in this process.
  [[nodiscard]] std::shared_ptr<Transport> endpoint(Rank rank) const override;

 private:
  std::shared_ptr<RankPlaces> places_;
};

}  // namespace stagecraft
