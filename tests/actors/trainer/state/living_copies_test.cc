#include "stagecraft/actors/trainer/state/living_copies.h"

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the listing of a rank with the weights of some stages.
StateListing rank_with(int rank, std::vector<std::string> names, std::int64_t updates) {
  return {.rank = Rank(rank), .names = std::move(names), .updates = updates};
}

/// Returns the listings of two copies of two stages, by their counts of updates.
std::vector<StateListing> two_by_two(const std::vector<std::int64_t>& updates) {
  return {rank_with(0, {"weight:a", "adamw.m:a"}, updates[0]),
          rank_with(1, {"weight:b", "adamw.m:b"}, updates[1]),
          rank_with(2, {"weight:a", "adamw.m:a"}, updates[2]),
          rank_with(3, {"weight:b", "adamw.m:b"}, updates[3])};
}

TEST_CASE("LV-1: a rank without weights takes those of its copy", "[actors][recovery]") {
  const LivingCopies found = choose_living_copies(two_by_two({7, kNoWeights, 7, 7}));
  CHECK(found.updates == 7);
  CHECK((found.sources == std::vector{Rank(0), Rank(3)}));
}

TEST_CASE("LV-1: the newest state is taken that all stages have", "[actors][recovery]") {
  const LivingCopies back = choose_living_copies(two_by_two({8, 7, 7, kNoWeights}));
  CHECK(back.updates == 7);
  CHECK((back.sources == std::vector{Rank(1), Rank(2)}));
  const LivingCopies forth = choose_living_copies(two_by_two({8, 7, 7, 8}));
  CHECK(forth.updates == 8);
  CHECK((forth.sources == std::vector{Rank(0), Rank(3)}));
}

TEST_CASE("stages that are lost, or whose ranks stand at other updates, need a checkpoint",
          "[actors][recovery]") {
  CHECK_THAT(refusal(
                 [] {
                   (void)choose_living_copies(two_by_two({7, kNoWeights, 7, kNoWeights}));
                 },
                 Errc::WorkerLost),
             ContainsSubstring("no rank has adamw.m:b") && ContainsSubstring("load a checkpoint") &&
                 ContainsSubstring("rank 0 those after 7 updates, rank 1 none"));
  CHECK_THAT(refusal(
                 [] {
                   (void)choose_living_copies(two_by_two({8, 7, 8, kNoWeights}));
                 },
                 Errc::WorkerLost),
             ContainsSubstring("rank 2 those after 8 updates, rank 3 none"));
  CHECK_THAT(refusal(
                 [] {
                   (void)choose_living_copies(two_by_two({-1, -1, -1, -1}));
                 },
                 Errc::WorkerLost),
             ContainsSubstring("there is no state"));
}

TEST_CASE("a tensor that ranks with different stages have is found on any of them",
          "[actors][recovery]") {
  const LivingCopies found = choose_living_copies(
      {rank_with(0, {"weight:tied"}, kNoWeights), rank_with(1, {"weight:b", "weight:tied"}, 3)});
  CHECK(found.updates == 3);
  CHECK((found.sources == std::vector{Rank(1)}));
}

}  // namespace
}  // namespace stagecraft
