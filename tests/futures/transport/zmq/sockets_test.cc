#include "stagecraft/futures/transport/zmq/sockets.h"

#include <string>

#include "stagecraft/futures/transport/zmq/data_port.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/lingering_port.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a port opens at an address where ended connections linger", "[futures][port]") {
  const std::string bind = "tcp://127.0.0.1:" + std::to_string(tests::lingering_port());
  CHECK(DataPort::open({.bind = bind})->address().endpoint == bind);
}

TEST_CASE("an address that cannot be bound is refused", "[futures][port]") {
  const auto refused = [](const std::string& bind, const std::string& what) {
    CHECK_THROWS_WITH(DataPort::open({.bind = bind}), ContainsSubstring(what));
    CHECK(thrown_by([&] { static_cast<void>(DataPort::open({.bind = bind})); }) ==
          Errc::TransportRefused);
  };
  const auto port = DataPort::open();
  refused("nowhere", "cannot listen on nowhere");
  refused("tcp://192.0.2.1:*", "an address of this host");
  refused(port->address().endpoint, "a port that is free");
}

TEST_CASE("a peer with an address or a key that makes no sense is not admitted",
          "[futures][port]") {
  const auto port = DataPort::open();
  const std::string key = DataPort::open({.bind = "ipc://*"})->address().key;
  const auto not_admitted = [&](const PortAddress& peer, const std::string& what) {
    CHECK_THROWS_WITH(port->admit(peer), ContainsSubstring(what));
  };
  not_admitted({"nowhere://127.0.0.1:99", key}, "cannot connect to nowhere://127.0.0.1:99");
  not_admitted({"", key}, "name an address that a data port returned");
  not_admitted({"tcp://127.0.0.1:80", ""}, "not a CURVE public key");
  not_admitted({"tcp://127.0.0.1:80", key + "0"}, "not a CURVE public key");
  not_admitted({"tcp://127.0.0.1:80", std::string(40, '~')}, "not a CURVE public key");
}

}  // namespace
}  // namespace stagecraft
