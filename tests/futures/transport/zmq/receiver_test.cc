#include "stagecraft/futures/transport/zmq/receiver.h"

#include <atomic>
#include <string>

#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

const Error kWhy(Errc::WorkerFailed, "a test ended the step");

TEST_CASE("a frame that cannot be read ends its link and nothing else (DP-2)", "[futures][port]") {
  std::atomic<int> told = 0;
  std::string why;
  TwoPorts two(
      "tcp://127.0.0.1:*",
      {.largest_tensor = 1 << 20, .when_broken = [&](const std::string&, const Error& error) {
         why = error.what();
         ++told;
       }});
  RawPeer peer;
  two.port->admit(peer.address());
  peer.connect(*two.port);
  peer.send_frame(0, 8, 8);
  CHECK(two.zero->receive(Rank{1}, kTag).wait_until(patience()));
  std::string expected;
  SECTION("one part") {
    peer.send({"x"});
    expected = "it has 1 parts, expected 2";
  }
  SECTION("many parts") {
    peer.send({"a", "b", "c", "d", "e"});
    expected = "it has 3 parts, expected 2";
  }
  SECTION("no header") {
    peer.send({"x", "y"});
    expected = "malformed";
  }
  SECTION("a long header") {
    peer.send({std::string(5000, 'x'), "y"});
    expected = "expected at most 1024";
  }
  SECTION("larger than allowed") {
    peer.send_frame(1, (1 << 20) + 1, 8);
    expected = "raise largest_tensor";
  }
  SECTION("a gap") {
    peer.send_frame(2, 8, 8);
    expected = "frames were lost";
  }
  CHECK(eventually([&] { return told == 1; }));
  CHECK_THAT(why, ContainsSubstring(expected));
  CHECK_THAT(why, ContainsSubstring(peer.address().key));
  peer.send_frame(1, 8, 8);
  CHECK(eventually([&] { return two.link(peer.address().key).frames_refused == 2; }));
  two.require_work(1);
  CHECK(told == 1);
  CHECK(two.zero->bytes_waiting() == 0);
  CHECK(two.port->counts().partial_bytes == 0);
}

TEST_CASE("memory of partly received tensors is given back when nobody wants them",
          "[futures][port]") {
  TwoPorts two;
  RawPeer peer;
  two.port->admit(peer.address());
  peer.connect(*two.port);
  peer.send_frame(0, 5000, 100);
  REQUIRE(eventually([&] { return two.port->counts().partial_bytes == 5000; }));
  SECTION("the epoch is over") {
    two.zero->advance(kTag.plan, Epoch{1}, kWhy);
  }
  SECTION("the end is closed") {
    two.zero->close(kWhy);
  }
  SECTION("the peer is forgotten") {
    two.port->forget(peer.address());
    peer.send_frame(1, 8, 8);
    CHECK(eventually([&] { return two.link(peer.address().key).frames_refused == 1; }));
  }
  SECTION("its link breaks") {
    peer.send({"x", "y"});
  }
  CHECK(eventually([&] { return two.port->counts().partial_bytes == 0; }));
}

TEST_CASE("a tensor for a network or a rank that is not here is dropped and counted",
          "[futures][port]") {
  TwoPorts two;
  SECTION("no such network") {
    two.other->send(two.port->address(), NetworkId{8}, Rank{1}, Rank{0}, kTag, number(1));
  }
  SECTION("no such rank") {
    two.other->send(two.port->address(), kNetwork, Rank{1}, Rank{3}, kTag, number(1));
  }
  SECTION("a sender that is none") {
    two.other->send(two.port->address(), kNetwork, Rank{3}, Rank{0}, kTag, number(1));
  }
  CHECK(eventually([&] { return two.port->counts().tensors_misdirected == 1; }));
  two.require_work(1);
  // A rank of the network that lives in another process gets nothing here.
  two.other->send(two.port->address(), kNetwork, Rank{1}, Rank{1}, kTag, number(1));
  two.require_work(2);
}

}  // namespace
}  // namespace stagecraft
