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

TEST_CASE("a task alone with its number is the one that its row lacks", "[scheduler][repair]") {
  const auto written = [](const std::string& text) {
    CAPTURE(text);
    const Schedule schedule = Schedule::parse(text);
    const auto found = mistyped_in(schedule);
    REQUIRE(found.has_value());
    CHECK_FALSE(found->other.has_value());
    const Schedule corrected = apply(schedule, *found);
    CHECK(validate(corrected, schedule.stage_graph()).empty());
    return to_string(*found, schedule);
  };
  const std::string rows = "0F0 0F1 0F2 0B0 .   0B1 .   0B2\n.   1F0 1B0 1F1 1B1 1F3 1B2 .\n";
  CHECK(written(rows) == "1F2 for 1F3 (row 1, column 5)");
  CHECK(written("@microbatches 3\n" + rows) == "1F2 for 1F3 (row 1, column 5)");
  CHECK(written("0F0 0F2 0B0 0B1") == "0F1 for 0F2 (row 0, column 1)");
  CHECK(written("0F0 0F1|0B7 0B1") == "0B0 for 0B7 (row 0, column 1)");
  // Stage 0 is frozen, so its row lacks no backward.
  CHECK(written("@edges 0-1\n@frozen 0\n@form list\n0F0 0F1\n1F0 1B0 1F7 1B1") ==
        "1F1 for 1F7 (row 1, position 2)");
  const Schedule stage = Schedule::parse("@form list\n0F0 0B0\n1F0 5B0");
  const auto found = find_mistyped(stage, StageGraph::chain(2));
  REQUIRE(found.has_value());
  CHECK(to_string(found->meant) == "1B0");
  const auto reported =
      report_mistyped(validate(stage, StageGraph::chain(2)), stage, StageGraph::chain(2), {});
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].rule == "V04");
  CHECK(reported[0].message ==
        "no other task is of stage 5, and 1B0 is missing; write 1B0 for 5B0 (row 1, position 1)");
}

TEST_CASE("a task alone with its number is not guessed if several are, or several are missing",
          "[scheduler][repair]") {
  for (const char* text : {"0F0 0F1 0B0",                       // one that is right
                           "@microbatches 2\n0F0 0F5 0B0 0B6",  // two numbers
                           "@microbatches 3\n0F0 0F7 0B0",      // two missing
                           "0F0 0F1 0B0 0B1 0F2\n1F0 1F1 1B0 1B1 ."}) {
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
