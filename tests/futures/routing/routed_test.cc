#include "stagecraft/futures/routing/routed.h"

#include <cstdint>
#include <memory>

#include "stagecraft/futures/transport/zmq/data_port.h"
#include "stagecraft/tests/conformance/transport_forms.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("ranks of one process hand tensors over without a copy, those of others do not",
          "[futures][transport]") {
  const Endpoints net = here_and_elsewhere(3);
  const at::Tensor sent = number(5);
  CHECK(net.ranks[1]->hands_over(Rank{2}));
  CHECK_FALSE(net.ranks[1]->hands_over(Rank{0}));
  CHECK_FALSE(net.ranks[0]->hands_over(Rank{1}));
  net.ranks[1]->send(Rank{2}, Tag{}, sent);
  net.ranks[1]->send(Rank{0}, Tag{}, sent);
  const auto near = net.ranks[2]->receive(Rank{1}, Tag{});
  const auto far = net.ranks[0]->receive(Rank{1}, Tag{});
  REQUIRE(near.ready());
  CHECK(near.get().const_data_ptr() == sent.const_data_ptr());
  CHECK(number_from(far) == 5);
  CHECK(far.get().const_data_ptr() != sent.const_data_ptr());
  CHECK(net.ranks[1]->route_to(Rank{2}) == Route::HandOver);
  CHECK(net.ranks[1]->route_to(Rank{0}) == Route::Socket);
  CHECK(net.ranks[0]->route_to(Rank{1}) == Route::Unused);
  CHECK(reinterpret_cast<std::uintptr_t>(far.get().const_data_ptr()) % 64 == 0);
}

TEST_CASE("all ends know the hosts of ranks by the addresses of their ports",
          "[futures][transport]") {
  TwoPorts two;  // both at 127.0.0.1, with ports of their own
  two.network.place(Rank{2}, {"tcp://10.0.0.7:4000", two.other->address().key});
  two.other_network.place(Rank{2}, {"tcp://10.0.0.7:4000", two.port->address().key});
  for (const auto& end : {two.zero, two.one}) {
    CHECK(end->host_of(Rank{0}) == "tcp://127.0.0.1");
    CHECK(end->host_of(Rank{1}) == "tcp://127.0.0.1");
    CHECK(end->host_of(Rank{2}) == "tcp://10.0.0.7");
  }
  const Endpoints local = here_and_elsewhere(3);
  CHECK(local.ranks[0]->host_of(Rank{1}) == local.ranks[1]->host_of(Rank{1}));
  CHECK(local.ranks[0]->host_of(Rank{0}) == local.ranks[0]->host_of(Rank{1}));
}

TEST_CASE("the port of a rank's predecessor is forgotten when another takes its place",
          "[futures][port]") {
  TwoPorts two;
  two.require_work(1);
  const auto successor = DataPort::open({.bind = "tcp://127.0.0.1:*"});
  RoutedNetwork successors(successor, kNetwork, 3);
  successors.place(Rank{0}, two.port->address());
  const std::string old = two.other->address().key;

  two.network.place(Rank{1}, successor->address());
  two.one->send(Rank{0}, kTag, number(7));  // the predecessor lives on
  REQUIRE(eventually([&] { return two.link(old).frames_refused > 0; }));
  CHECK(two.port->counts().tensors_misdirected == 0);
  CHECK(two.link(old).tensors_received == 1);

  successors.endpoint(Rank{1})->send(Rank{0}, kTag, number(8));
  CHECK(number_from(two.zero->receive(Rank{1}, kTag)) == 8);
  two.network.place(Rank{1}, successor->address());  // again: that stays
  two.zero->send(Rank{1}, kTag, number(9));
  CHECK(number_from(successors.endpoint(Rank{1})->receive(Rank{0}, kTag)) == 9);
}

TEST_CASE("a network detaches from its port with its last end", "[futures][port]") {
  const auto port = DataPort::open({.bind = "ipc://*"});
  auto network = std::make_unique<RoutedNetwork>(port, kNetwork, 1);
  auto end = network->endpoint(Rank{0});
  CHECK(thrown_by([&] { const RoutedNetwork again(port, kNetwork, 1); }) == Errc::UsageArgument);
  network.reset();
  CHECK(thrown_by([&] { const RoutedNetwork again(port, kNetwork, 1); }) == Errc::UsageArgument);
  end.reset();
  CHECK_FALSE(thrown_by([&] { const RoutedNetwork again(port, kNetwork, 1); }));
}

TEST_CASE("a rank has an end where it lives, and cannot come back to this process",
          "[futures][transport]") {
  TwoPorts two;
  CHECK_THROWS_WITH(two.network.endpoint(Rank{1}),
                    ContainsSubstring("rank 1 is in the process of"));
  CHECK(thrown_by([&] { static_cast<void>(two.network.endpoint(Rank{3})); }) ==
        Errc::TransportRefused);
  CHECK(thrown_by([&] { two.network.place(Rank{3}, two.other->address()); }) ==
        Errc::TransportRefused);
  CHECK_FALSE(thrown_by([&] { two.network.place(Rank{0}, two.port->address()); }));
  CHECK(thrown_by([&] { two.network.place(Rank{1}, two.port->address()); }) == Errc::UsageArgument);
}

}  // namespace
}  // namespace stagecraft
