#include "stagecraft/actors/launch/ways/start_turns.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("of one host a few workers start at a time, of all hosts at once", "[actors][hosts]") {
  constexpr auto kQueued = StartState::Queued, kKnocks = StartState::Knocking,
                 kSettled = StartState::Settled;
  const std::vector<Host> hosts{
      {.name = "a", .slots = 24}, {.name = "b"}, {.name = "c", .slots = 9}};
  std::vector<StartState> places(34, kQueued);
  const auto turns = [&] { return start_turns(hosts, places); };
  CHECK(turns() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30, 31, 32});
  for (const int place : turns()) {
    places[static_cast<std::size_t>(place)] = kKnocks;
  }
  CHECK(turns().empty());
  places[3] = places[7] = places[32] = kSettled;
  CHECK(turns() == std::vector<int>{8, 9, 33});
  CHECK(start_turns(hosts, std::vector(3, kQueued)) == std::vector<int>{0, 1, 2});
  CHECK(start_turns({}, std::vector(40, kQueued)).size() == 40);  // on this host
}

}  // namespace
}  // namespace stagecraft
