#include "stagecraft/futures/transport/zmq/identity_judge.h"

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/tests/futures/transport/zmq/plain_sockets.h"
#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

TEST_CASE("garbage on a port's socket harms nobody (DP-1)", "[futures][port]") {
  TwoPorts two;
  std::vector<std::unique_ptr<Connection>> connections;
  const std::string greeting = std::string("\xff\0\0\0\0\0\0\0\1\x7f", 10) + std::string("\3\0", 2);
  std::string noise;
  for (int i = 0; i < 70'000; ++i) {
    noise += static_cast<char>(i * 2654435761U >> 13U);
  }
  for (const std::string& bytes : {std::string(),
                                   std::string("GET / HTTP/1.1\r\n\r\n"),
                                   noise,
                                   std::string(1 << 20, '\xff'),
                                   greeting,
                                   greeting + "CURVE" + std::string(47, '\0'),
                                   greeting + "CURVE" + std::string(47, '\0') + noise,
                                   greeting + "NULL" + std::string(48, '\0') +
                                       std::string("\2\xff\xff\xff\xff\xff\xff\xff\xff", 9)}) {
    connections.push_back(std::make_unique<Connection>(two.port->address()));
    connections.back()->write(bytes);
    two.require_work(1);
  }
  for (int i = 0; i < 50; ++i) {
    connections.push_back(std::make_unique<Connection>(two.port->address()));
  }
  connections.resize(20);
  two.require_work(2);
  CHECK(two.port->counts().links.size() == 1);
}

TEST_CASE("a client without an admitted key does not get in (DP-1)", "[futures][port]") {
  TwoPorts two;
  RawPeer plain;
  plain.connect(*two.port, /*curve=*/false);
  RawPeer stranger;
  stranger.connect(*two.port);
  static_cast<void>(plain.offer(RawPeer::frame(0, 8, 8)));
  stranger.send_frame(0, 8, 8);
  CHECK(eventually([&] { return two.port->counts().connections_held >= 1; }));
  two.require_work(1);
  CHECK(two.zero->bytes_waiting() == 0);

  two.network.place(Rank{2}, stranger.address());
  CHECK(two.zero->receive(Rank{2}, kTag).wait_until(patience()));
  CHECK(two.link(stranger.address().key).tensors_received == 1);
  CHECK(two.port->counts().links.size() == 2);
}

TEST_CASE("a port of another cluster does not get in and waits", "[futures][port]") {
  TwoPorts two;
  const auto foreign = DataPort::open();
  RoutedNetwork network(foreign, kNetwork, 3);
  network.place(Rank{0}, two.port->address());
  network.endpoint(Rank{2})->send(Rank{0}, kTag, number(9));
  CHECK(eventually([&] { return two.port->counts().connections_held >= 1; }));
  CHECK(two.zero->bytes_waiting() == 0);
  // The address is the same but the key differs, so no server answers to it.
  PortAddress wrong = two.port->address();
  wrong.key = foreign->address().key;
  two.other->admit(wrong);
  two.other->send(wrong, kNetwork, Rank{1}, Rank{0}, kTag, number(10));
  two.require_work(1);
  CHECK(two.zero->bytes_waiting() == 0);
}

}  // namespace
}  // namespace stagecraft
