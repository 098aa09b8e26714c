#include "stagecraft/futures/transport/zmq/strangers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// Returns the beginning of a command of this many bytes, which would be CURVE's HELLO.
std::string command_of(std::uint64_t size) {
  std::string bytes = std::string("\xff\0\0\0\0\0\0\0\1\x7f", 10) + std::string("\3\0", 2) +
                      "CURVE" + std::string(47, '\0') + "\6";
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(size >> static_cast<unsigned>(shift));
  }
  return bytes;
}

TEST_CASE("a client without a key cannot announce more than a chunk (DP-7)",
          "[futures][port][hostile]") {
  TwoPorts two;
  const Connection stranger(two.port->address());
  stranger.write(command_of(std::uint64_t{8} << 20U));
  CHECK(eventually([&] { return stranger.is_ended(); }));
  two.require_work(1);
}

TEST_CASE("many clients that hold back announced messages are limited and keep nobody out (DP-7)",
          "[futures][port][hostile]") {
  constexpr std::size_t kMore = 60;
  TwoPorts two;
  two.require_work(1);
  std::vector<std::unique_ptr<Connection>> strangers;
  for (std::size_t i = 0; i < kMostStrangers + kMore; ++i) {
    strangers.push_back(std::make_unique<Connection>(two.port->address()));
    strangers.back()->write(command_of(kLargestChunk) + std::string(1000, 'x'));
  }
  const auto ended = [&] {
    return static_cast<std::size_t>(
        std::ranges::count_if(strangers, [](const auto& s) { return s->is_ended(); }));
  };
  CHECK(eventually([&] { return ended() >= kMore; }));
  CHECK(ended() <= kMore + 8);
  CHECK(strangers.front()->is_ended());
  CHECK_FALSE(strangers.back()->is_ended());
  CHECK(eventually(
      [&] { return two.port->counts().strangers_ended >= static_cast<std::int64_t>(kMore); }));
  two.require_work(3);
  // A peer with a key gets in although all of them stay.
  RawPeer peer;
  two.network.place(Rank{2}, peer.address());
  peer.connect(*two.port);
  peer.send_frame(0, 8, 8);
  CHECK(two.zero->receive(Rank{2}, kTag).wait_until(patience()));
  CHECK(two.link(peer.address().key).tensors_received == 1);
}

}  // namespace
}  // namespace stagecraft
