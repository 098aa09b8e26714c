/// Tests the verdict on a schedule file: the violations, the report that people read, and the
/// repairs.

#include "stagecraft/tools/schedule/report/verdict.h"

#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kStuckRows =
    "@form list\n"
    "0F0 0B0 0F1 0B1\n"
    "1F0 1F1 1B0 1B1\n";

/// Returns the file as a command reads it, with its columns as times.
ScheduleFile judged_file(const std::string& text, const std::string& graph = "") {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  return schedule_in(text, "own.sched", {.command = "c", .graph = graph, .strict = true}, console);
}

std::vector<Violation> judged(const std::string& text, const std::string& graph = "") {
  return violations_of(judged_file(text, graph));
}

std::string report_of(const std::string& text) {
  std::istringstream in;
  std::ostringstream out, err;
  const Console console{in, out, err};
  const ScheduleFile file = judged_file(text);
  return report_text(file, violations_of(file), console);
}

TEST_CASE("a schedule has a size, with replicas, sizes and communication if there are any",
          "[tools][schedule]") {
  const auto size_of = [](const std::string& text) { return size_text(judged_file(text)); };
  CHECK(size_of("0F0 0B0\n") == "1 device, 1 stage, 1 microbatch");
  CHECK(size_of("@microbatches 2\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
                "0F0 3F0 3B0 0B0\n2F0 1F0 1B0 2B0\n") ==
        "2 devices, 4 stages in 2 replicas, 2 microbatches");
  CHECK(size_of("@sizes 1,2\n0F0 0F1 . . 0B0 0B1\n. . 1F0 1B0 . .\n") ==
        "2 devices, 2 stages, 2 microbatches of sizes 1, 2");
  CHECK(size_of("0F0,0SEND_F0\n1RECV_F0,1F0\n") ==
        "2 devices, 2 stages, 1 microbatch, 2 actions of communication");
}

TEST_CASE("a schedule that breaks rules is refused with the first violation and their number",
          "[tools][schedule][bad-input]") {
  CHECK_NOTHROW(require_valid(judged_file("0F0 0B0\n")));
  const auto refused = [](const std::string& text) {
    return refusal([&] { require_valid(judged_file(text)); }, Errc::ScheduleInvalid);
  };
  CHECK_THAT(refused("0F0 .\n"),
             ContainsSubstring("'own.sched' has 1 violation, the first: V10 ") &&
                 ContainsSubstring("; stagecraft schedule check shows all"));
  CHECK_THAT(refused("@rows 3\n0F0 .\n"), ContainsSubstring("has 2 violations, the first: V02: "));
}

TEST_CASE("a deadlock is drawn, listed task by task, and repaired", "[tools][schedule]") {
  const std::string report = report_of(kStuckRows);
  for (const char* part : {"d0  0F0 [0B0] [0F1] 0B1\n",
                           "d1  1F0 [1F1] [1B0] 1B1\n",
                           "\nV29: 4 tasks that wait for each other\n",
                           "0B0 (row 0, position 1) waits for 1B0\n",
                           "0F1 (row 0, position 2) comes after 0B0\n",
                           "1F1 (row 1, position 1) waits for 0F1\n",
                           "1B0 (row 1, position 2) comes after 1F1\n",
                           "repair: exchange 0B0 and 0F1 of row 0 (positions 1 and 2)"}) {
    CHECK_THAT(report, ContainsSubstring(part));
  }
}

TEST_CASE("of a long cycle both ends of each row's part are told", "[tools][schedule]") {
  // Row 0 runs its first backward before its last forward, which row 1 runs first.
  std::string rows[] = {"0F0 0B0", "1F9"};
  for (int m = 1; m < 10; ++m) {
    rows[0] += " 0F" + std::to_string(m);
  }
  for (int m = 0; m < 9; ++m) {
    rows[1] += " 1F" + std::to_string(m);
  }
  for (int m = 0; m < 10; ++m) {
    rows[0] += m > 0 ? " 0B" + std::to_string(m) : "";
    rows[1] += " 1B" + std::to_string(m);
  }
  CHECK_THAT(report_of("@form list\n" + rows[0] + "\n" + rows[1] + "\n"),
             ContainsSubstring("  0B0 (row 0, position 1) waits for 1B0\n"
                               "  0F9 (row 0, position 10) comes after 0B0\n"
                               "  1F9 (row 1, position 0) waits for 0F9\n"
                               "  1B0 (row 1, position 10) comes after 1F9\n"));
}

TEST_CASE("a number that was mistyped is one violation, which says what was meant",
          "[tools][schedule]") {
  const std::string typo = "@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B0\n";
  const std::string report = report_of(typo);
  CHECK_THAT(report, ContainsSubstring("\nrepair: write 1B1 for 1B0 (row 1, position 3); "));
  CHECK_THAT(report, !ContainsSubstring("V10") && !ContainsSubstring("V29"));
  const std::vector<Violation> found = judged(typo);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rule == "V08");
  CHECK(found[0].message ==
        "1B0 is at row 1, position 1 and again here, and 1B1 is missing; write 1B1 for 1B0 "
        "(row 1, position 3)");
  REQUIRE(found[0].mistyped);
  CHECK(to_string(found[0].mistyped->meant) == "1B1");
  CHECK_FALSE(proposed_exchange(found));
}

TEST_CASE("two mistyped numbers are two violations, and what else is wrong is told beside them",
          "[tools][schedule]") {
  const std::vector<Violation> found =
      judged("@form list\n@rows 3\n0F0 0F0 0B0 0B1\n1F0 1F1 1B0 1B0\n");
  REQUIRE(found.size() == 3);
  CHECK(found[0].rule == "V02");
  REQUIRE((found[1].mistyped && found[2].mistyped));
  CHECK(to_string(found[1].mistyped->meant) == "0F1");
  CHECK(to_string(found[2].mistyped->meant) == "1B1");
}

TEST_CASE("a task that is there twice while two are missing is no mistyped number",
          "[tools][schedule]") {
  const std::vector<Violation> found = judged("@microbatches 3\n@form list\n0F0 0F0 0B0\n");
  REQUIRE(found.size() >= 2);
  CHECK(found[0].rule == "V08");
  CHECK_FALSE(found[0].mistyped);
  CHECK(found[1].rule == "V09");
}

TEST_CASE("a CSV is a chain unless edges are given, and keeps its own placement",
          "[tools][schedule]") {
  const std::string csv = "0F0,,,0B0\n1F0,,,1B0\n,2F0,2B0,\n";
  const std::vector<Violation> wrong_graph = judged(csv);
  REQUIRE(wrong_graph.size() == 1);
  CHECK(wrong_graph[0].rule == "V32");
  CHECK_THAT(wrong_graph[0].message,
             ContainsSubstring("stage 1 does not wait for 0") &&
                 ContainsSubstring("expresses only chains") &&
                 ContainsSubstring("--graph 0-2,1-2"));
  CHECK(judged(csv, "0-2,1-2").empty());
  // Text can state that its graph is a chain, and a fault in a chain stays a fault.
  CHECK(judged("0F0 . . 0B0\n1F0 . . 1B0\n. 2F0 2B0 .\n").size() > 1);
  CHECK(judged("0F0,0F1,0B0,,,0B1\n,1F0,1B0,1F1,1B1,\n").front().rule == "V22");
  CHECK(judged("0F0,,,0B0\n1F0,,,1B0\n2F0,2B0,,\n").front().rule != "V32");
  // In a V, stages 0 and 3 are on the first rank.
  CHECK(judged("0F0,,,3F0,3B0,,,0B0\n,1F0,2F0,,,2B0,1B0,\n").empty());
}

TEST_CASE("the communication that a CSV lists is checked too", "[tools][schedule]") {
  const std::string first = "0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n";
  CHECK(judged(first + "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n").empty());
  // Without the second receive, 1F1 computes with a value that never came.
  const auto found = judged(first + "1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().rule == "V31");
}

}  // namespace
}  // namespace stagecraft::tools
