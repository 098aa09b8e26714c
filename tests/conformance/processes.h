/// Processes holds one network whose ranks live behind several data ports, as in several processes.
/// The ports are all in this process; the data plane sees no difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/futures/routing/routed.h"

namespace stagecraft {

/// Maps places to processes: the driver is first, rank r is at r + 1.
using Homes = std::vector<std::size_t>;

class Processes {
 public:
  /// `options`: of every port.
  Processes(Homes homes, DataPortOptions options);

  /// Sends tensors between all processes until large ones go through shared memory.
  void begin_to_share() const;

  [[nodiscard]] std::shared_ptr<Transport> endpoint(Rank rank) const;
  /// Returns the names of the transports between all ends.
  [[nodiscard]] std::set<std::string_view> transports() const;
  [[nodiscard]] int ranks() const { return static_cast<int>(homes_.size()) - 1; }

  /// Ends the process of `rank` as soon as it has sent this many bytes. Returns the end of its
  /// successor.
  std::shared_ptr<Transport> replace(Rank rank, std::int64_t after_bytes);

 private:
  [[nodiscard]] std::size_t home_of(Rank rank) const;
  void start();
  void introduce(std::size_t home);
  void place_all_of(std::size_t told, std::size_t home);

  Homes homes_;
  DataPortOptions options_;
  std::vector<std::shared_ptr<DataPort>> ports_;
  std::vector<std::unique_ptr<RoutedNetwork>> networks_;
};

}  // namespace stagecraft
