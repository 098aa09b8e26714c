#include "stagecraft/scheduler/notes/accumulation.h"

#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::optional<std::string> reordered(const Schedule& schedule) {
  return reordered_accumulation(schedule, schedule.stage_graph());
}

TEST_CASE("schedules that take backwards in order keep the sums of one process",
          "[scheduler][accumulation]") {
  CHECK_FALSE(reordered(gpipe(4, 8)).has_value());
  CHECK_FALSE(reordered(zb_v(4, 8)).has_value());
}

TEST_CASE("newest first changes the sums, and the first stage to do so is named",
          "[scheduler][accumulation]") {
  const auto why = reordered(gpipe(4, 8, {.reverse_backward = true}));
  REQUIRE(why.has_value());
  CHECK_THAT(*why, ContainsSubstring("stage 0 adds microbatch 5 after microbatch 7"));
}

TEST_CASE("of a split backward the weight half decides", "[scheduler][accumulation]") {
  const std::string forwards = "@form list\n0F0 0F1 0F2 ";
  CHECK_FALSE(reordered(Schedule::parse(forwards + "0I2 0I1 0I0 0W0 0W1 0W2\n")));
  CHECK(reordered(Schedule::parse(forwards + "0I0 0I1 0I2 0W2 0W1 0W0\n")));
}

TEST_CASE("a sum of two is the same either way, one of three is not", "[scheduler][accumulation]") {
  CHECK_FALSE(reordered(Schedule::parse("0F0 0F1 0F2 0B1 0B0 0B2\n")));
  CHECK(reordered(Schedule::parse("0F0 0F1 0F2 0B2 0B0 0B1\n")));
}

TEST_CASE("what does nothing adds nothing", "[scheduler][accumulation][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  const Schedule schedule = Schedule::parse(
      "@form list\n"
      "0F0 0F1 0F2 0B2 0B0 0B1\n"
      "1F0 1B0 1F1 1B1 1F2 1B2\n");
  CHECK(reordered_accumulation(schedule, graph).has_value());
  graph.freeze({0});
  CHECK_FALSE(reordered_accumulation(schedule, graph).has_value());
}

TEST_CASE("forwards out of order are told, the first of each stage", "[scheduler][accumulation]") {
  CHECK(late_forwards(zb_v(4, 8)).empty());
  CHECK(late_forwards(chimera(4, 8)).empty());  // each replica counts separately
  const Schedule schedule = Schedule::parse(
      "@form list\n"
      "0F0 0F1 0F3 0F2 0B0 0B1 0B2 0B3\n"
      "1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3\n"
      "2F3 2F2 2F1 2F0 2B0 2B1 2B2 2B3\n");
  CHECK(late_forwards(schedule) ==
        std::vector<LateForward>{{StageId(0), Microbatch(2), Microbatch(3)},
                                 {StageId(2), Microbatch(2), Microbatch(3)}});
}

TEST_CASE("two replicas add up shares", "[scheduler][accumulation]") {
  const auto why = reordered(chimera(4, 8));
  REQUIRE(why.has_value());
  CHECK_THAT(*why, ContainsSubstring("2 replicas"));
}

}  // namespace
}  // namespace stagecraft
