#include "stagecraft/futures/transport/zmq/peer_sender.h"

#include <ATen/ops/ones.h>

#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/listener.h"
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

}  // namespace
}  // namespace stagecraft
