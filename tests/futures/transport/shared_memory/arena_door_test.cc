/// Tests how memory is offered and taken: in one step each, without a wait, within bounds.
#include "stagecraft/futures/transport/shared_memory/arena_door.h"

#include <sys/resource.h>

#include <string>

#include "stagecraft/futures/transport/shared_memory/arena_offer.h"
#include "stagecraft/futures/transport/shared_memory/local_socket.h"
#include "stagecraft/tests/futures/transport/shared_memory/arenas.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::bytes_from;
using Answer = ArenaOffer::Answer;

/// No other test of this host has it.
std::string own_key(int number) {
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(number);
}

struct Scene {
  std::string key = own_key(0);
  ArenaDoor door{key};
  std::shared_ptr<SlotArena> arena = SlotArena::make(testing::kMebi);

  [[nodiscard]] std::optional<ArenaOffer> offer() const {
    return ArenaOffer::make(key, arena->id(), arena->descriptor());
  }
};

TEST_CASE("an arena that is offered is taken, and claimed once", "[futures][shared_memory]") {
  Scene s;
  const auto offer = s.offer();
  REQUIRE(offer);
  CHECK(offer->answer() == Answer::None);
  CHECK(s.door.claim(s.arena->id()) == nullptr);
  s.door.look();
  CHECK(offer->answer() == Answer::Taken);
  const auto view = s.door.claim(s.arena->id());
  REQUIRE(view);
  CHECK(s.door.claim(s.arena->id()) == nullptr);
  const auto lent = s.arena->put(bytes_from(3, 100), std::chrono::steady_clock::now());
  s.arena->mark_sent(lent->slot);
  CHECK(view->take(lent->slot, {100}, at::kByte, 100).equal(bytes_from(3, 100)));
}

TEST_CASE("where no door is, nothing is offered", "[futures][shared_memory]") {
  const Scene s;
  CHECK_FALSE(ArenaOffer::make(own_key(1), s.arena->id(), s.arena->descriptor()));
  CHECK(ArenaDoor().events().empty());
}

TEST_CASE("memory that is none is refused, and the connection ended", "[futures][shared_memory]") {
  Scene s;
  const auto no_memory =
      ArenaOffer::make(s.key, s.arena->id(), testing::sealed_file(testing::kMebi, 0));
  REQUIRE(no_memory);
  Descriptor connection = local_socket::make();
  const auto [address, size] = local_socket::address_of(s.key);
  REQUIRE(connect(connection.number(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(send(connection.number(), "hello", 5, 0) == 5);
  s.door.look();
  CHECK(no_memory->answer() == Answer::Refused);
  CHECK(s.door.claim(s.arena->id()) == nullptr);
  char nothing = 0;
  CHECK(recv(connection.number(), &nothing, 1, MSG_DONTWAIT) == 0);
  CHECK(s.door.events().size() == 1);  // it listens on
}

TEST_CASE("connections that say nothing are bounded, and others get in (AD-1)",
          "[futures][shared_memory]") {
  Scene s;
  const auto [address, size] = local_socket::address_of(s.key);
  std::vector<Descriptor> silent;
  for (std::size_t i = 0; i < 3 * ArenaDoor::kMostWaiting; ++i) {
    silent.push_back(local_socket::make());
    if (connect(silent.back().number(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      s.door.look();  // its queue was full
    }
  }
  s.door.look();
  CHECK(s.door.events().size() == 1 + ArenaDoor::kMostWaiting);
  const auto offer = s.offer();
  REQUIRE(offer);
  s.door.look();
  CHECK(offer->answer() == Answer::Taken);
}

TEST_CASE("an offer ends with the door", "[futures][shared_memory]") {
  std::optional<ArenaOffer> offer;
  {
    const Scene s;
    offer = s.offer();
  }
  CHECK(offer->answer() == Answer::Refused);
}

}  // namespace
}  // namespace stagecraft
