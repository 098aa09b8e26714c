#include "stagecraft/actors/launch/ways/rank_processes.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("the first ranks are threads, and the others share processes in their order (PL-1)",
          "[actors][launch]") {
  const SpawnOptions options{.ranks_per_process = 3, .local_ranks = 2};
  CHECK_FALSE(lives_elsewhere(options, Rank(1)));
  CHECK(lives_elsewhere(options, Rank(2)));
  CHECK(place_in(options, Rank(2)) == 0);
  CHECK(place_in(options, Rank(4)) == 0);
  CHECK(place_in(options, Rank(5)) == 1);
  CHECK(places_for(options, 2) == 0);
  CHECK(places_for(options, 5) == 1);
  CHECK(places_for(options, 6) == 2);
  CHECK(ranks_text(options, 1) == "ranks 5-7");
  CHECK(ranks_text({.local_ranks = 1}, 1) == "rank 2");
}

}  // namespace
}  // namespace stagecraft
