/// RoutedNetwork: the data plane of a crew whose ranks live in several processes. Each end picks
/// the way by where the peer is: in this process a tensor is handed over as it is, elsewhere it
/// goes through the DataPort.
///
/// Each process of the crew makes one, with the same id, and places the ranks that live elsewhere.
/// It is made everywhere before anybody sends: what comes for a network that is not there is
/// dropped and counted. May be used from any thread; the mutex guards the places.
/// RN-1: a send goes to where the rank is placed when it is called, so that a replaced worker's
///       later tensors go to its successor.
#pragma once

#include <memory>

#include "stagecraft/futures/transport/data_port.h"
#include "stagecraft/futures/transport/network.h"

namespace stagecraft {

class RankPlaces;

class RoutedNetwork final : public Network {
 public:
  /// Ranks 0 to ranks - 1 and the driver; all are in this process until they are placed.
  /// Errors: UsageArgument when the port has a network of that id.
  RoutedNetwork(std::shared_ptr<DataPort> port, NetworkId id, int ranks);

  /// `rank` (or `kDriver`) lives in the process of that port, which is admitted. May be called
  /// again after a replacement; the port of the one before is the caller's to forget.
  /// Errors: TransportRefused for a rank that is not in this network, and for an address that is
  ///         none; UsageArgument for a rank that was elsewhere and now should be here.
  void place(Rank rank, const PortAddress& where);

  /// Errors: TransportRefused for a rank that is not in this network, or not in this process.
  [[nodiscard]] std::shared_ptr<Transport> endpoint(Rank rank) const override;

 private:
  std::shared_ptr<RankPlaces> places_;
};

}  // namespace stagecraft
