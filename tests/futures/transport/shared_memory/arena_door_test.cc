/// Tests how memory is offered and taken: in one step each, without a wait, within bounds.
#include "stagecraft/futures/transport/shared_memory/arena_door.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/futures/transport/shared_memory/arena_offer.h"
#include "stagecraft/futures/transport/shared_memory/local_socket.h"
#include "stagecraft/tests/futures/transport/shared_memory/arenas.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::bytes_from;
using testing::kPage;
using Answer = ArenaOffer::Answer;

/// No other test of this host has it.
std::string own_key(int number) {
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(number);
}

struct Scene {
  std::string key = own_key(0);
  ArenaDoor door{key};
  std::shared_ptr<SlotArena> arena = SlotArena::make(testing::kMebi);
  LentMemory lent{testing::kMebi};

  [[nodiscard]] std::optional<ArenaOffer> offer() const {
    ArenaOffer made(key);
    return made.is_connected() && made.send(arena->id(), arena->file().descriptor(), lent.file())
               ? std::optional<ArenaOffer>(std::move(made))
               : std::nullopt;
  }
};

TEST_CASE("an arena that is offered is taken, and claimed once", "[futures][shared_memory]") {
  Scene s;
  const auto offer = s.offer();
  REQUIRE(offer);
  CHECK(offer->answer() == Answer::None);
  CHECK(s.door.claim(s.arena->id()).view == nullptr);
  s.door.look();
  CHECK(offer->answer() == Answer::Taken);
  const auto [view, connection] = s.door.claim(s.arena->id());
  char rung = 0;
  CHECK(recv(connection.number(), &rung, 1, MSG_DONTWAIT) < 0);
  CHECK(offer->ring());
  CHECK(recv(connection.number(), &rung, 1, MSG_DONTWAIT) == 1);
  REQUIRE(view);
  CHECK(s.door.claim(s.arena->id()).view == nullptr);
  const auto sent = s.arena->put(bytes_from(3, 100));
  s.arena->mark_sent(sent->slot);
  CHECK(view->take(sent->slot, {100}, at::kByte, 100).equal(bytes_from(3, 100)));
  const at::Tensor in_place = s.lent.zeros(10, at::kInt).fill_(7);
  const at::Tensor seen = view->take(*s.lent.range_of(in_place), {10}, at::kInt, 40);
  CHECK(seen.equal(in_place));
}

TEST_CASE("where no door is, nothing is offered", "[futures][shared_memory]") {
  const ArenaOffer nowhere(own_key(1));
  CHECK_FALSE(nowhere.is_connected());
  CHECK_FALSE(nowhere.is_possible());
  CHECK(ArenaDoor().events().empty());
}

TEST_CASE("what is no shared memory is refused, and the connection ended",
          "[futures][shared_memory]") {
  Scene s;
  const ArenaOffer no_memory(s.key);
  REQUIRE(no_memory.send(s.arena->id(), testing::sealed_file(testing::kMebi, 0), nullptr));
  Descriptor connection = local_socket::make();
  const auto [address, size] = local_socket::address_of(s.key);
  REQUIRE(connect(connection.number(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(send(connection.number(), "hello", 5, 0) == 5);
  s.door.look();
  CHECK(no_memory.answer() == Answer::Refused);
  CHECK(s.door.claim(s.arena->id()).view == nullptr);
  char nothing = 0;
  CHECK(recv(connection.number(), &nothing, 1, MSG_DONTWAIT) == 0);
  CHECK(s.door.events().size() == 1);  // it listens on
}

TEST_CASE("connections that say nothing are bounded, and others get in (AD-1)",
          "[futures][shared_memory]") {
  Scene s;
  const auto [address, size] = local_socket::address_of(s.key);
  std::vector<Descriptor> silent;
  for (std::size_t i = 0; i < 3 * ArenaDoor::kMostSilent; ++i) {
    silent.push_back(local_socket::make());
    if (connect(silent.back().number(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      s.door.look();  // its queue was full
    }
  }
  s.door.look();
  CHECK(s.door.events().size() == 1 + ArenaDoor::kMostSilent);
  const auto offer = s.offer();
  REQUIRE(offer);
  s.door.look();
  CHECK(offer->answer() == Answer::Taken);
}

TEST_CASE("many offers at once are all taken, more than may say nothing",
          "[futures][shared_memory]") {
  Scene s;
  std::vector<std::shared_ptr<SlotArena>> arenas;
  std::vector<ArenaOffer> offers;
  for (std::size_t i = 0; i < 3 * ArenaDoor::kMostSilent; ++i) {
    arenas.push_back(SlotArena::make(kPage));
    offers.emplace_back(s.key);
    if (!offers.back().is_connected()) {
      CHECK(offers.back().is_possible());  // the door is busy: later
      s.door.look();
      offers.back() = ArenaOffer(s.key);
    }
    REQUIRE(offers.back().send(arenas.back()->id(), arenas.back()->file().descriptor(), nullptr));
  }
  for (std::size_t i = 0; i < offers.size(); ++i) {
    s.door.look();
    CHECK(offers[i].answer() == Answer::Taken);
    CHECK(s.door.claim(arenas[i]->id()).view != nullptr);
  }
}

TEST_CASE("a message with three descriptors is refused, and none stays open",
          "[futures][shared_memory]") {
  Scene s;
  const auto open_files = [] {
    const auto folder = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(folder), end(folder));
  };
  const Descriptor connection = local_socket::make();
  const auto [address, size] = local_socket::address_of(s.key);
  REQUIRE(connect(connection.number(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  const auto before = open_files();
  constexpr ArenaId arena{5};
  const int memory = s.arena->file().descriptor().number();
  REQUIRE(local_socket::send(connection, arena, std::array{memory, memory, memory}));
  s.door.look();
  CHECK(s.door.claim(arena).view == nullptr);
  CHECK(open_files() == before);
}

TEST_CASE("an arena is there for messages that arrive after its process has ended (AD-2)",
          "[futures][shared_memory]") {
  Scene s;
  std::vector<ArenaId> ended;
  for (std::size_t i = 0; i < ArenaDoor::kMostEnded + 2; ++i) {
    const std::shared_ptr<SlotArena> arena = SlotArena::make(kPage);
    const ArenaOffer offer(s.key);
    REQUIRE(offer.send(arena->id(), arena->file().descriptor(), nullptr));
    s.door.look();
    ended.push_back(arena->id());
  }
  s.door.look();
  CHECK(s.door.events().size() == 1);
  CHECK(s.door.claim(ended[0]).view == nullptr);
  CHECK(s.door.claim(ended[1]).view == nullptr);
  CHECK(s.door.claim(ended[2]).view != nullptr);
  s.door.look(std::chrono::steady_clock::now() + ArenaDoor::kEnded + std::chrono::seconds(1));
  CHECK(s.door.claim(ended.back()).view == nullptr);
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
