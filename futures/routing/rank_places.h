/// RankPlaces knows the process of each rank of a network, and the carrier of tensors to it.
///
/// A RoutedNetwork and its ends share it; the last of them detaches the network from the port. Any
/// thread may use it. The mutex guards the places.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/routing/transport_choice.h"
#include "stagecraft/futures/transport/port_address.h"

namespace stagecraft {

class RankPlaces {
 public:
  /// Makes mailboxes for ranks 0 to ranks - 1 and the driver; all are in this process.
  /// Errors: UsageArgument if the port has a network of that id.
  RankPlaces(std::shared_ptr<DataPort> port, NetworkId id, int ranks);
  RankPlaces(const RankPlaces&) = delete;
  RankPlaces(RankPlaces&&) = delete;
  RankPlaces& operator=(const RankPlaces&) = delete;
  RankPlaces& operator=(RankPlaces&&) = delete;
  ~RankPlaces();

  [[nodiscard]] const NetworkHere& here() const { return here_; }

  /// Returns the carrier of tensors to the rank.
  /// Errors: TransportRefused for a rank that is not in this network.
  [[nodiscard]] std::shared_ptr<const Carrier> carrier_to(Rank rank) const;
  /// Returns the endpoint of the rank's process; nothing if it is this process. Errors: as above.
  [[nodiscard]] std::optional<std::string> elsewhere(Rank rank) const;

  /// Returns the host in the endpoint at which the rank receives. Errors: as above.
  [[nodiscard]] std::string host_of(Rank rank) const;

  /// Places the rank as RoutedNetwork::place says.
  void set(Rank rank, const PortAddress& where);

 private:
  struct Place {
    std::shared_ptr<const Carrier> carrier;
    std::optional<PortAddress> elsewhere;  ///< the port of another process
  };

  /// Requires: the caller holds the mutex.
  [[nodiscard]] const Place& of(Rank rank) const;
  [[nodiscard]] static std::size_t index(Rank rank);

  const NetworkHere here_;
  mutable std::mutex mutex_;
  std::vector<Place> places_;  ///< the driver's first, rank r's at r + 1
};

}  // namespace stagecraft
