#include "stagecraft/futures/transport/zmq/data_port.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_tensor.h>

#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a port that closes drops the tensors that it has not sent (DP-4)", "[futures][port]") {
  const at::Tensor large = at::ones({1 << 20}, at::kByte);
  {
    TwoPorts two;
    const MutePeer mute;
    two.network.place(Rank{2}, mute.address());
    two.port->admit({"tcp://127.0.0.1:1", mute.address().key.substr(0, 39) + "0"});
    for (int i = 0; i < 32; ++i) {
      two.zero->send(Rank{2}, kTag, large);
    }
    two.port->close();
    two.port->close();
    two.zero->send(Rank{1}, kTag, large);
    two.port->admit(two.other->address());
    two.port->forget(two.other->address());
  }
  CHECK(large.use_count() == 1);
}

TEST_CASE("a callback of a port may release the port", "[futures][port]") {
  auto two = std::make_shared<TwoPorts>();
  auto one = two->one;
  const Future<at::Tensor> arrival = two->zero->receive(Rank{1}, kTag);
  std::atomic<bool> gone = false;
  auto zero = two->zero;
  std::weak_ptr<DataPort> port = two->port;
  arrival.on_ready([&gone, holder = std::exchange(two, nullptr)]() mutable {
    holder.reset();
    gone = true;
  });
  zero.reset();
  one->send(Rank{0}, kTag, number(4));
  CHECK(number_from(arrival) == 4);
  CHECK(eventually([&] { return gone.load(); }));
  CHECK(eventually([&] { return port.expired(); }));
}

TEST_CASE("a port counts bytes and tensors by peer", "[futures][port]") {
  TwoPorts two("ipc://*");
  two.zero->send(Rank{1}, kTag, at::ones({1'000'000}, at::kByte));
  two.zero->send(Rank{1}, kTag, at::empty({0}));
  CHECK(two.one->receive(Rank{0}, kTag).wait_until(patience()));
  CHECK(two.one->receive(Rank{0}, kTag).wait_until(patience()));
  const LinkCounts sent = two.link(two.other->address().key);
  CHECK(sent.tensors_sent == 2);
  CHECK(sent.bytes_sent == 1'000'000);
  const LinkCounts received = two.other->counts().links[two.port->address().key];
  CHECK(received.tensors_received == 2);
  CHECK(received.bytes_received == 1'000'000);
  CHECK(received.frames_refused == 0);
}

TEST_CASE("a received tensor has no autograd, and a tensor that no frame can hold is refused",
          "[futures][port]") {
  TwoPorts two("ipc://*", {.largest_tensor = 1000});
  const at::Tensor leaf = at::ones({2}).requires_grad_();
  two.zero->send(Rank{1}, kTag, leaf);
  two.zero->send(Rank{1}, kTag, leaf.mul(2).view({2, 1}).t());
  for (int i = 0; i < 2; ++i) {
    const auto arrival = two.one->receive(Rank{0}, kTag);
    REQUIRE(arrival.wait_until(patience()));
    CHECK_FALSE(arrival.get().requires_grad());
    CHECK(arrival.get().is_contiguous());
  }
  CHECK(leaf.requires_grad());

  const auto says = [&](const at::Tensor& tensor, const std::string& what) {
    CHECK_THROWS_WITH(two.zero->send(Rank{1}, kTag, tensor), ContainsSubstring(what));
    CHECK(thrown_by([&] { two.zero->send(Rank{1}, kTag, tensor); }) == Errc::TransportRefused);
  };
  says(at::quantize_per_tensor(at::ones({2}), 1.0, 0, at::kQInt8), "dense tensors that are not");
  says(at::ones({2}).to_sparse(), "dense tensors");
  says(at::empty({2}, at::TensorOptions().device(at::kMeta)), "move it to the CPU");
  says(at::empty({1001}, at::kByte), "its 1001 bytes are more than 1000: raise largest_tensor");
  says(at::ones(std::vector<std::int64_t>(65, 1)), "it has 65 dimensions, but at most 64");
  two.require_work(1);
}

}  // namespace
}  // namespace stagecraft
