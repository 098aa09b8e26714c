/// TwoPorts is the smallest network over data ports: two processes of one rank each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "stagecraft/futures/routing/routed.h"
#include "stagecraft/futures/transport/zmq/data_port.h"
#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {

/// Holds rank 0 behind one port and rank 1 behind another; a test places a third rank.
struct TwoPorts {
  explicit TwoPorts(const std::string& bind = "tcp://127.0.0.1:*", DataPortOptions options = {})
      : port([&] {
          options.bind = bind;
          return DataPort::open(options);
        }()),
        other(DataPort::open({.bind = bind, .shared_memory = options.shared_memory})) {
    network.place(Rank{1}, other->address());
    other_network.place(Rank{0}, port->address());
  }

  /// Requires that transfers work both ways.
  void require_work(std::int64_t value) {
    zero->send(Rank{1}, kTag, number(value));
    REQUIRE(number_from(one->receive(Rank{0}, kTag)) == value);
    one->send(Rank{0}, kTag, number(value + 1));
    REQUIRE(number_from(zero->receive(Rank{1}, kTag)) == value + 1);
  }

  [[nodiscard]] LinkCounts link(const std::string& key) const { return port->counts().links[key]; }

  std::shared_ptr<DataPort> port;
  std::shared_ptr<DataPort> other;
  RoutedNetwork network{port, kNetwork, 3};
  RoutedNetwork other_network{other, kNetwork, 3};
  std::shared_ptr<Transport> zero = network.endpoint(Rank{0});
  std::shared_ptr<Transport> one = other_network.endpoint(Rank{1});
};

}  // namespace stagecraft
