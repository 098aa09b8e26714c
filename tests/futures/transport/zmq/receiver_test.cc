#include "stagecraft/futures/transport/zmq/receiver.h"

#include <atomic>
#include <memory>
#include <string>

#include <ATen/ops/zeros.h>

#include "stagecraft/futures/transport/shared_memory/arena_offer.h"
#include "stagecraft/futures/transport/shared_memory/frame_ring.h"
#include "stagecraft/futures/transport/shared_memory/slot_arena.h"
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
  two.network.place(Rank{2}, peer.address());
  peer.connect(*two.port);
  peer.send_frame(0, 8, 8);
  CHECK(two.zero->receive(Rank{2}, kTag).wait_until(patience()));
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
  two.network.place(Rank{2}, peer.address());
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

/// A process of this host that can put frames into memory which it shares with a port, and send
/// them by a socket.
class RingPeer {
 public:
  explicit RingPeer(TwoPorts& two) : two_(two) {
    two.network.place(kFrom, raw_.address());
    raw_.connect(*two.port);
    REQUIRE(offer_.is_connected());
    REQUIRE(offer_.send(arena_->id(), arena_->file().descriptor(), nullptr));
    REQUIRE(eventually([&] { return offer_.answer() == ArenaOffer::Answer::Taken; }));
    // The first frame names the memory.
    const auto lent = arena_->put(at::zeros({8}, at::kByte));
    arena_->mark_sent(lent->slot);
    FrameHeader header = header_of(0);
    header.slot = lent->slot;
    raw_.send({encode_frame(header), ""});
    CHECK(two.zero->receive(kFrom, kTag).wait_until(patience()));
  }

  void send(std::uint64_t sequence) { raw_.send({encode_frame(header_of(sequence)), kBytes}); }
  void write(std::uint64_t sequence) { write(encode_frame(header_of(sequence)), kBytes); }
  void write(const std::string& header, const std::string& bytes) {
    REQUIRE(ring_.write({header, bytes}));
    ring_if_asleep();
  }
  void write_if_room(std::uint64_t sequence) {
    if (ring_.write({encode_frame(header_of(sequence)), kBytes})) {
      ring_if_asleep();
    }
  }
  void ring_if_asleep() {
    if (ring_.finds_sleeper()) {
      is_heard_ = offer_.ring();
    }
  }
  [[nodiscard]] bool is_heard() const { return is_heard_; }
  [[nodiscard]] LinkCounts link() const { return two_.link(raw_.address().key); }
  [[nodiscard]] std::int64_t received() const { return link().tensors_received; }
  [[nodiscard]] std::string key() const { return raw_.address().key; }

  static FrameHeader header_of(std::uint64_t sequence) {
    FrameHeader header = decode_frame(RawPeer::frame(sequence, 8, 8).front());
    header.from = kFrom;  // so that rank 1 has its order alone
    return header;
  }

 private:
  static constexpr Rank kFrom{2};
  static inline const std::string kBytes = "8 bytes.";

  TwoPorts& two_;
  RawPeer raw_;
  std::shared_ptr<SlotArena> arena_ = SlotArena::make(1 << 20);
  ArenaOffer offer_{two_.port->address().key};
  RingWriter ring_{arena_->file().ring()};
  bool is_heard_ = true;  ///< when it last rang
};

TEST_CASE("frames of a ring and of a socket have one order", "[futures][port]") {
  TwoPorts two("tcp://127.0.0.1:*", {.shared_memory = 1 << 20});
  RingPeer peer(two);
  SECTION("one of the ring waits for those of the socket") {
    peer.write(2);
    peer.write(3);
    two.require_work(1);
    CHECK(peer.received() == 1);
    peer.send(1);
    CHECK(eventually([&] { return peer.received() == 4; }));
  }
  SECTION("one of the socket comes after those of the ring") {
    for (std::uint64_t i = 1; i < 60; i += 2) {
      peer.write(i);
      peer.send(i + 1);
    }
    CHECK(eventually([&] { return peer.received() == 61; }));
  }
  SECTION("one that was lost breaks the link") {
    peer.write(2);
    peer.send(3);
    CHECK(eventually([&] { return peer.link().frames_refused == 1; }));
  }
  two.require_work(3);
}

TEST_CASE("a ring with a frame that cannot be read breaks its link and nothing else (DP-2)",
          "[futures][port]") {
  std::atomic<int> told = 0;
  TwoPorts two(
      "tcp://127.0.0.1:*",
      {.shared_memory = 1 << 20, .when_broken = [&](const std::string&, const Error&) { ++told; }});
  RingPeer peer(two);
  SECTION("no header") {
    peer.write("x", "y");
  }
  SECTION("a long header") {
    peer.write(std::string(5000, 'x'), "y");
  }
  SECTION("memory that is not the ring's") {
    FrameHeader header = RingPeer::header_of(1);
    header.slot = SlotRef{
        .arena = ArenaId{77}, .number = 0, .offset = MemoryFile::kFirstSlot, .capacity = 4096};
    peer.write(encode_frame(header), "");
  }
  SECTION("fewer bytes than the header says") {
    peer.write(encode_frame(RingPeer::header_of(1)), "y");
  }
  CHECK(eventually([&] { return told == 1; }));
  peer.write(1);
  CHECK_FALSE(peer.is_heard());
  peer.send(1);
  CHECK(eventually([&] { return peer.link().frames_refused == 2; }));
  two.require_work(1);
  CHECK(peer.received() == 1);
  CHECK(told == 1);
}

TEST_CASE("a peer that is forgotten is heard by its ring no more", "[futures][port]") {
  TwoPorts two("tcp://127.0.0.1:*", {.shared_memory = 1 << 20});
  RingPeer peer(two);
  two.port->forget({"tcp://127.0.0.1:1", peer.key()});
  two.require_work(1);
  peer.write(1);
  CHECK_FALSE(peer.is_heard());
  two.require_work(3);
  CHECK(peer.received() == 1);
}

TEST_CASE("a ring that is filled again and again holds up nobody", "[futures][port]") {
  TwoPorts two("tcp://127.0.0.1:*", {.shared_memory = 1 << 20});
  RingPeer peer(two);
  FrameHeader far = RingPeer::header_of(std::uint64_t{1} << 40U);
  peer.send(far.sequence);
  for (std::uint64_t i = 1; i < 3000; ++i) {
    peer.write_if_room(i);
  }
  two.require_work(1);
  CHECK(eventually([&] { return peer.link().frames_refused > 0; }));
}

TEST_CASE("a port that admits a peer again finds that frames were lost", "[futures][port]") {
  TwoPorts two("tcp://127.0.0.1:*", {.shared_memory = 1 << 20});
  two.require_work(1);
  CHECK(eventually([&] {
    two.require_work(1);
    return two.zero->route_to(Rank{1}) == Route::SharedMemory;
  }));
  two.other->forget(two.port->address());
  two.other->admit(two.port->address());
  CHECK(eventually([&] {
    two.zero->send(Rank{1}, kTag, number(2));
    return two.other->counts().links[two.port->address().key].frames_refused > 0;
  }));
  CHECK(two.zero->route_to(Rank{1}) == Route::Socket);
}

TEST_CASE("a peer does not send in the name of a rank of another process (DP-9)",
          "[futures][port]") {
  TwoPorts two;
  RawPeer thief;
  two.network.place(Rank{2}, thief.address());
  thief.connect(*two.port);
  FrameHeader header = decode_frame(RawPeer::frame(0, 8, 8).front());
  header.from = Rank{1};
  thief.send({encode_frame(header), std::string(8, 'x')});
  CHECK(eventually([&] { return two.port->counts().tensors_misdirected == 1; }));
  CHECK(two.zero->bytes_waiting() == 0);
  thief.send_frame(1, 8, 8);  // its link stays
  CHECK(two.zero->receive(Rank{2}, kTag).wait_until(patience()));
  two.require_work(1);
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
  SECTION("a rank of another process that has not been placed") {
    two.other->send(two.port->address(), kNetwork, Rank{2}, Rank{0}, kTag, number(1));
  }
  SECTION("a rank of this process") {
    two.other->send(two.port->address(), kNetwork, Rank{0}, Rank{0}, kTag, number(1));
  }
  CHECK(eventually([&] { return two.port->counts().tensors_misdirected == 1; }));
  two.require_work(1);
  // A rank of the network that lives in another process gets nothing here.
  two.other->send(two.port->address(), kNetwork, Rank{1}, Rank{1}, kTag, number(1));
  two.require_work(2);
}

}  // namespace
}  // namespace stagecraft
