/// sides runs the same work in this process and in copies of it, which are made before there
/// are threads and reach this process through a socket each.
///
/// Benchmarks of transports and collectives use it: every side makes an end of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/futures/routing/routed.h"
#include "stagecraft/futures/transport/shared_memory/descriptor.h"

namespace stagecraft::bench {

/// Side is one process and its way to the others. Side 0 is the process that began.
class Side {
 public:
  /// Starts the other sides, which run `work` and end. Runs `work` here as well, and waits for the
  /// others. Requires: no thread of this process exists.
  /// Errors: std::runtime_error if another side fails.
  static void run(int sides, const std::function<void(Side&)>& work);

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] int sides() const { return sides_; }
  [[nodiscard]] bool is_first() const { return number_ == 0; }

  /// Gives `text` to all sides, and returns what each has given, by number. All sides call it.
  [[nodiscard]] std::vector<std::string> exchange(const std::string& text);

  /// Returns the socket to the other one of two sides.
  [[nodiscard]] const Descriptor& to_other() const { return sockets_.front(); }

 private:
  Side(int number, int sides) : number_(number), sides_(sides) {}

  const int number_, sides_;
  std::vector<Descriptor> sockets_;  ///< of the first: to each other one; of others: to the first
};

/// Link is a network over data ports with one rank on each side: the rank of a side's number.
struct Link {
  Link(Side& side, const DataPortOptions& options);

  std::shared_ptr<DataPort> port;
  std::unique_ptr<RoutedNetwork> network;
  std::shared_ptr<Transport> end;
};

}  // namespace stagecraft::bench
