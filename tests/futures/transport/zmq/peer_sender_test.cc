#include "stagecraft/futures/transport/zmq/peer_sender.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/listener.h"
#include "stagecraft/tests/support/tcp_relay.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

TEST_CASE("a port connects to a peer with the first tensor for it (DP-5)", "[futures][port]") {
  const tests::Listener listener;
  TwoPorts two;
  const PortAddress peer{listener.endpoint(), RawPeer().address().key};
  two.port->admit(peer);
  two.require_work(1);  // by then it has connected to another port
  CHECK_FALSE(listener.is_asked(0));
  two.port->send(peer, kNetwork, Rank{0}, Rank{2}, kTag, number(3));
  CHECK(listener.is_asked(30'000));
}

TEST_CASE("a peer that does not read delays nobody else, and its tensors can be dropped (DP-3)",
          "[futures][port]") {
  TwoPorts two;
  const MutePeer mute;
  two.network.place(Rank{2}, mute.address());
  const at::Tensor large = at::ones({1 << 20}, at::kByte);
  constexpr int kMany = 64;
  for (int i = 0; i < kMany; ++i) {
    two.zero->send(Rank{2}, kTag, large);
  }
  two.require_work(1);
  two.port->forget(mute.address());
  CHECK(eventually([&] { return two.link(mute.address().key).tensors_dropped > 0; }));
  const LinkCounts link = two.link(mute.address().key);
  CHECK(link.tensors_dropped + link.tensors_sent == kMany);
  two.zero->send(Rank{2}, kTag, number(1));
  CHECK(eventually(
      [&] { return two.link(mute.address().key).tensors_dropped == link.tensors_dropped + 1; }));
  CHECK(eventually([&] { return large.use_count() == 1; }));
  two.require_work(2);
}

/// Rank 0 behind one port sends to rank 1 behind another, over a relay that fails on command.
struct Relayed {
  explicit Relayed(DataPortOptions of_sender = {}, DataPortOptions of_receiver = {})
      : sender(DataPort::open(std::move(of_sender))),
        receiver(DataPort::open(std::move(of_receiver))),
        relay(port_of(receiver->address())) {
    from.place(Rank{1}, {"tcp://127.0.0.1:" + std::to_string(relay.port()), key()});
    to.place(Rank{0}, sender->address());
  }

  static std::uint16_t port_of(const PortAddress& address) {
    return static_cast<std::uint16_t>(
        std::stoi(address.endpoint.substr(address.endpoint.rfind(':') + 1)));
  }
  [[nodiscard]] const std::string& key() const { return receiver->address().key; }
  [[nodiscard]] LinkCounts heard() const { return receiver->counts().links[sender->address().key]; }

  void require_work(std::int64_t value) {
    zero->send(Rank{1}, kTag, number(value));
    REQUIRE(number_from(one->receive(Rank{0}, kTag)) == value);
  }
  /// Cuts the connection, and waits until the sender has made another.
  void cut() {
    const int before = relay.connections();
    relay.cut();
    REQUIRE(eventually([&] { return relay.connections() > before; }));
  }

  std::shared_ptr<DataPort> sender, receiver;
  tests::TcpRelay relay;
  RoutedNetwork from{sender, kNetwork, 2}, to{receiver, kNetwork, 2};
  std::shared_ptr<Transport> zero = from.endpoint(Rank{0}), one = to.endpoint(Rank{1});
};

TEST_CASE("a connection that is cut with nothing on the way is made again, and goes on in order",
          "[futures][port]") {
  Relayed two;
  two.require_work(1);
  for (int i = 0; i < 3; ++i) {
    two.cut();
    const at::Tensor large = at::full({1 << 20}, i, at::kByte);
    two.zero->send(Rank{1}, kTag, number(10 + i));
    two.zero->send(Rank{1}, kTag, large);
    two.zero->send(Rank{1}, kTag, number(20 + i));
    CHECK(number_from(two.one->receive(Rank{0}, kTag)) == 10 + i);
    const Future<at::Tensor> arrival = two.one->receive(Rank{0}, kTag);
    REQUIRE(arrival.wait_until(patience()));
    CHECK(at::equal(arrival.get(), large));
    CHECK(number_from(two.one->receive(Rank{0}, kTag)) == 20 + i);
  }
  CHECK(two.heard().frames_refused == 0);
}

TEST_CASE("a frame that was on the way when its connection was cut is missed by the next (DP-2)",
          "[futures][port]") {
  std::atomic<int> told = 0;
  Relayed two({}, {.when_broken = [&](const std::string&, const Error&) { ++told; }});
  two.require_work(1);
  two.relay.hold();
  two.zero->send(Rank{1}, kTag, number(2));
  REQUIRE(eventually([&] { return two.relay.is_holding_bytes(); }));
  const Future<at::Tensor> arrival = two.one->receive(Rank{0}, kTag);
  two.cut();
  CHECK_FALSE(arrival.ready());  // it is not sent again
  two.zero->send(Rank{1}, kTag, number(3));
  CHECK(eventually([&] { return told == 1; }));
  two.zero->send(Rank{1}, kTag, number(4));
  CHECK(eventually([&] { return two.heard().frames_refused == 2; }));
  CHECK_FALSE(arrival.ready());  // neither does a later one take its place
  CHECK(told == 1);
}

TEST_CASE("a connection in use that is cut is reported once, although it is made again (DP-6)",
          "[futures][port]") {
  std::atomic<int> told = 0;
  Relayed two({.silence = std::chrono::minutes(1),
               .when_cut = [&](const std::string&, const Error&) { ++told; }});
  two.require_work(1);
  two.cut();
  two.require_work(2);
  CHECK(eventually([&] { return told == 1; }));
  two.cut();
  two.require_work(3);
  CHECK(told == 1);
}

}  // namespace
}  // namespace stagecraft
