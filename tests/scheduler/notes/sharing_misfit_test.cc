#include "stagecraft/scheduler/notes/sharing_misfit.h"

#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::optional<std::string> misfit(const Schedule& schedule, Sharing level) {
  return sharing_misfit(schedule, schedule.stage_graph(), level);
}

TEST_CASE("copies whose rows do the same can share at every level", "[scheduler][dag][sharding]") {
  for (const Sharing level : {Sharing::States, Sharing::Gradients, Sharing::Weights}) {
    CHECK_FALSE(misfit(chimera(4, 8), level));
    CHECK_FALSE(misfit(gpipe(4, 8), level));
  }
}

TEST_CASE("copies whose rows come to other rounds share the optimizer's state alone",
          "[scheduler][dag][sharding][bad-input]") {
  // Rank 0 ends its microbatches one by one, and rank 1 both at once.
  const Schedule schedule = Schedule::parse(
      "@microbatches 4\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 .   .   0B0 0F1 .   .   0B1 .   3F0 3F1 3B0 3B1 .   .\n"
      ".   1F0 1B0 .   .   1F1 1B1 .   2F0 2F1 .   .   .   2B0 2B1\n");
  CHECK_FALSE(misfit(schedule, Sharing::Nothing));
  CHECK_FALSE(misfit(schedule, Sharing::States));
  const auto why = misfit(schedule, Sharing::Gradients);
  REQUIRE(why);
  CHECK_THAT(*why, ContainsSubstring("--zero 1"));
}

TEST_CASE("copies on one rank share nothing", "[scheduler][dag][sharding][bad-input]") {
  const auto why = misfit(Schedule::parse("@edges 0-1,2-3\n@replicas 0=2,1=3\n"
                                          "0F0 1F0 1B0 0B0 2F0 3F0 3B0 2B0\n"),
                          Sharing::States);
  REQUIRE(why);
  CHECK_THAT(*why, ContainsSubstring("stages 0 and 2 are copies of one stage on"));
}

}  // namespace
}  // namespace stagecraft
