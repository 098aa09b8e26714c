#include "stagecraft/scheduler/rules/repair/mistyped.h"

#include <algorithm>
#include <string>
#include <utility>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::optional<Mistyped> mistyped_in(const Schedule& schedule) {
  return find_mistyped(schedule, schedule.stage_graph());
}

TEST_CASE("the second of two equal tasks has the wrong number", "[scheduler][repair]") {
  const Schedule schedule = Schedule::parse("@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B0");
  const auto found = mistyped_in(schedule);
  REQUIRE(found.has_value());
  CHECK(std::pair(found->row, found->column) == std::pair(1, 3));
  CHECK(found->other == std::pair(1, 1));
  CHECK(to_string(*found, schedule) == "1B1 for 1B0 (row 1, position 3)");
  const Schedule corrected = apply(schedule, *found);
  CHECK(validate(corrected, corrected.stage_graph()).empty());
}

TEST_CASE("the first of two equal tasks has the wrong number if only that is less wrong",
          "[scheduler][repair]") {
  const Schedule schedule = Schedule::parse("0F1 0B0 0F1 0B1");  // 0B0 needs 0F0
  const auto found = mistyped_in(schedule);
  REQUIRE(found.has_value());
  CHECK(to_string(*found, schedule) == "0F0 for 0F1 (row 0, column 0)");
}

TEST_CASE("a member of a group can have the wrong number", "[scheduler][repair]") {
  const Schedule schedule = Schedule::parse("0F0 0F1 0F2|0B0 0B1 0B1");
  const auto found = mistyped_in(schedule);
  REQUIRE(found.has_value());
  CHECK(to_string(found->meant) == "0B2");
  const Schedule group = Schedule::parse("@microbatches 2\n0F0 0B0|0F0 0B1");
  const auto member = mistyped_in(group);
  REQUIRE(member.has_value());
  CHECK(to_string(apply(group, *member)) == "@microbatches 2\n0F0 0B0|0F1 0B1\n");
}

TEST_CASE("several missing or several double tasks are no wrong number", "[scheduler][repair]") {
  for (const char* text : {"@microbatches 3\n0F0 0F0 0B0",
                           "0F0 0F0 0F1 0F1 0F3 0B0 0B1 0B2 0B3",
                           "0F0 0F0 0F0 0F2 0B0 0B1 0B2",
                           "0F0 0F0 0B0",
                           "0F0 0F1 0B0"}) {
    CAPTURE(text);
    CHECK_FALSE(mistyped_in(Schedule::parse(text)).has_value());
  }
}

TEST_CASE("every wrong number is reported as one violation, other faults remain",
          "[scheduler][repair]") {
  const Schedule schedule = Schedule::parse("@form list\n0F0 0F0 0B0 0B1 0U 0U\n1F0 1B0 1F1 1B0");
  const StageGraph graph = schedule.stage_graph();
  const std::vector<Violation> reported =
      report_mistyped(validate(schedule, graph), schedule, graph, {});
  REQUIRE(reported.size() == 3);
  CHECK(reported[0].rule == "V08");
  REQUIRE(reported[0].mistyped.has_value());
  CHECK_THAT(reported[0].message,
             ContainsSubstring("0F0 is at row 0, position 0") &&
                 ContainsSubstring("write 0F1 for 0F0 (row 0, position 1)"));
  CHECK(reported[1].mistyped.has_value());
  CHECK(reported[2].rule == "V26");
  CHECK_FALSE(reported[2].mistyped.has_value());
}

}  // namespace
}  // namespace stagecraft
