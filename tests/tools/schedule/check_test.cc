/// Tests `stagecraft schedule check`: faults are reported to people and programs.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

constexpr const char* kValid =
    "0F0 0F1 .   0B0 .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";
// 0B0 is in the column of 1B0, which it needs.
constexpr const char* kLate =
    "0F0 0F1 0B0 .   .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";
constexpr const char* kDeadlock =
    "@form list\n"
    "0F0 0B0 0F1 0B1\n"
    "1F0 1F1 1B0 1B1\n";

Json check_json(const std::string& text, int exit_code, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"check", "-", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const CommandResult result = run_schedule(words, text);
  CAPTURE(text, result.out, result.err);
  CHECK(result.exit_code == exit_code);
  REQUIRE(!result.out.empty());
  return Json::parse(result.out);
}

}  // namespace

TEST_CASE("a valid schedule is good, and says its size", "[tools][schedule]") {
  const TemporaryFolder folder;
  const CommandResult result = run_schedule({"check", folder.write("x", kValid)});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "valid: 2 devices, 2 stages, 2 microbatches\n");
  CHECK(result.err.empty());
  CHECK(run_schedule({"check", folder.write("y", "0F0 0B0")}).out ==
        "valid: 1 device, 1 stage, 1 microbatch\n");
}

TEST_CASE("a CSV whose columns are not times is read as an order, which is noted",
          "[tools][schedule]") {
  const TemporaryFolder folder;
  // Stage 1 runs beside stage 0, and rows have different lengths.
  const std::string beside = folder.write("beside.csv", "0F0,0F1,,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  const CommandResult lax = run_schedule({"check", beside});
  CHECK(lax.exit_code == 0);
  CHECK(lax.out == "valid: 2 devices, 2 stages, 2 microbatches\n");
  CHECK_THAT(lax.err,
             ContainsSubstring("the columns are not times, because 2 cells stand before cells "
                               "that they need; each row is read as an order"));
  CHECK(run_schedule({"convert", beside, "--to", "text"}).out ==
        "0F0 0F1 .   .   0B0 0B1\n.   1F0 1F1 1B0 1B1 .\n");
  const CommandResult strict = run_schedule({"check", beside, "--strict"});
  CHECK(strict.exit_code == 1);
  CHECK(strict.err.empty());
  CHECK_THAT(strict.out, ContainsSubstring("V20"));
  // JaxPP's schedules wait for data too.
  const CommandResult jaxpp =
      run_schedule({"check", "-"},
                   "[[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD), None],\n"
                   " [Task(stage_id=1, mubatch_idx=0, fwd_or_bwd=TaskType.FWD), None]]\n");
  CHECK_THAT(jaxpp.err,
             ContainsSubstring("the columns are not times, because a cell stands before one"));

  // An order that cannot run is reported with its cycle and repair, not with one complaint per
  // column.
  const std::string stuck = folder.write("stuck.csv", "0F0,0B0,,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  const CommandResult deadlock = run_schedule({"check", stuck, "--json"});
  CHECK(deadlock.exit_code == 1);
  const Json violations = Json::parse(deadlock.out).at("violations");
  REQUIRE(violations.size() == 1);
  CHECK(violations[0].at("rule") == "V29");
  CHECK(violations[0].at("cycle") == Json({"0B0", "0F1", "1F1", "1B0"}));
  CHECK(violations[0].at("repair").size() == 2);

  // Columns that are times stay an array, and text always stays one.
  const std::string timed = folder.write("timed.csv", "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n");
  CHECK(run_schedule({"check", timed}).err.empty());
  CHECK(run_schedule({"convert", timed, "--to", "pytorch"}).out ==
        "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n");
  CHECK(run_schedule({"check", "-"}, "0F0 0F1 . 0B0 0B1\n1F0 1F1 1B0 1B1 .\n").exit_code == 1);
}

TEST_CASE("violations are a grid, a message and exit status 1", "[tools][schedule]") {
  const TemporaryFolder folder;
  const CommandResult result = run_schedule({"check", folder.write("x", kLate)});
  CHECK(result.exit_code == 1);
  CHECK(result.err.empty());
  for (const char* part : {"[0B0]", "[1B0]", "V22 row 0 column 2 (0B0): ", "repair: exchange"}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
  }
  CHECK_THAT(result.out, !ContainsSubstring("\x1b["));
}

TEST_CASE("a wrong microbatch count is one line, and every cell for programs",
          "[tools][schedule][json][alike]") {
  const std::string text = std::string("@microbatches 1\n") + kValid;
  const TemporaryFolder folder;
  const CommandResult people = run_schedule({"check", folder.write("x", text)});
  CHECK(std::ranges::count(people.out, '[') == 4);  // all four are marked
  CHECK_THAT(people.out,
             ContainsSubstring("\nV05 row 0 column 1 (0F1): ") &&
                 ContainsSubstring("; likewise 0B1, 1F1, 1B1\n"));
  const Json found = check_json(text, 1).at("violations");
  REQUIRE(found.size() == 1);
  CHECK(found[0].at("task") == "0F1");
  CHECK(found[0].at("more") ==
        Json::parse(R"([{"row": 0, "column": 5, "task": "0B1", "missing": ""},
                        {"row": 1, "column": 3, "task": "1F1", "missing": ""},
                        {"row": 1, "column": 4, "task": "1B1", "missing": ""}])"));
  CHECK(found[0].at("missing") == "");
  CHECK_FALSE(found[0].contains("stages"));
}

TEST_CASE("what stages lack is one line, and by numbers for programs",
          "[tools][schedule][json][alike]") {
  const Json found = check_json(std::string("@microbatches 5\n") + kValid, 1).at("violations");
  REQUIRE(found.size() == 2);
  CHECK(found[0].at("rule") == "V09");
  CHECK(found[0].at("row").is_null());
  CHECK_FALSE(found[0].contains("more"));
  CHECK(found[0].at("stages") == Json::parse("[[0, 1]]"));
  CHECK(found[0].at("microbatches") == Json::parse("[[2, 4]]"));
  CHECK(found[1].at("rule") == "V10");
  CHECK(found[1].at("stages") == found[0].at("stages"));
}

TEST_CASE("a deadlock is drawn, listed task by task, and repaired", "[tools][schedule]") {
  const TemporaryFolder folder;
  const CommandResult result = run_schedule({"check", folder.write("x", kDeadlock)});
  CHECK(result.exit_code == 1);
  for (const char* part : {"d0  0F0 [0B0] [0F1] 0B1\n",
                           "d1  1F0 [1F1] [1B0] 1B1\n",
                           "0B0 (row 0, position 1) waits for 1B0\n",
                           "0F1 (row 0, position 2) comes after 0B0\n",
                           "1F1 (row 1, position 1) waits for 0F1\n",
                           "1B0 (row 1, position 2) comes after 1F1\n",
                           "repair: exchange 0B0 and 0F1 of row 0 (positions 1 and 2)"}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
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
  const CommandResult result = run_schedule(
      {"check", "-"}, "@form list\n" + rows[0] + "\n" + rows[1] + "\n", {.terminal = true});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out,
             ContainsSubstring("  0B0 (row 0, position 1) waits for 1B0\n"
                               "  0F9 (row 0, position 10) comes after 0B0\n"
                               "  1F9 (row 1, position 0) waits for 0F9\n"
                               "  1B0 (row 1, position 10) comes after 1F9\n"));
}

TEST_CASE("check for programs says rule, place, task, message, cycle and repair",
          "[tools][schedule][json]") {
  CHECK(check_json(kValid, 0) == Json{{"valid", true}, {"violations", Json::array()}});

  const Json late = check_json(kLate, 1);
  CHECK(late.at("valid") == false);
  REQUIRE(late.at("violations").size() == 1);
  const Json& v22 = late.at("violations")[0];
  CHECK(v22.size() == 7);
  CHECK(v22.at("rule") == "V22");
  CHECK(v22.at("row") == 0);
  CHECK(v22.at("column") == 2);
  CHECK(v22.at("task") == "0B0");
  CHECK_THAT(v22.at("message").get<std::string>(), ContainsSubstring("1B0 is at row 1, column 2"));
  CHECK(v22.at("cycle") == Json::array());
  CHECK(v22.at("repair").size() == 2);

  const Json dead = check_json(kDeadlock, 1);
  REQUIRE(dead.at("violations").size() == 1);
  const Json& v29 = dead.at("violations")[0];
  CHECK(v29.at("rule") == "V29");
  CHECK(v29.at("cycle") == Json{"0B0", "0F1", "1F1", "1B0"});
  CHECK(v29.at("repair") == Json::array({{{"row", 0}, {"column", 1}, {"task", "0B0"}},
                                         {{"row", 0}, {"column", 2}, {"task", "0F1"}}}));
}

TEST_CASE("what is about no cell has none", "[tools][schedule][json]") {
  const Json answer = check_json("@rows 3\n0F0 0B0\n", 1);
  CHECK(answer.at("violations")[0].at("rule") == "V02");
  CHECK(answer.at("violations")[0].at("row").is_null());
  CHECK(answer.at("violations")[0].at("column").is_null());
  CHECK(answer.at("violations")[0].at("task").is_null());
}

TEST_CASE("the first fields come in the order that people read", "[tools][schedule][json]") {
  const CommandResult result = run_schedule({"check", "-", "--json"}, kLate);
  CHECK(result.out.starts_with(
      R"({"valid":false,"violations":[{"rule":"V22","row":0,"column":2,"task":"0B0","message":")"));
}

TEST_CASE("between two pipes a valid schedule goes through unchanged", "[tools][schedule]") {
  const std::string commented = std::string("# mine\n") + kValid;
  const CommandResult good = run_schedule({"check", "-"}, commented);
  CHECK(good.exit_code == 0);
  CHECK(good.out == commented);
  CHECK_THAT(good.err, ContainsSubstring("valid: "));

  const CommandResult bad = run_schedule({"check", "-"}, kLate);
  CHECK(bad.exit_code == 1);
  CHECK(bad.out.empty());
  CHECK_THAT(bad.err, ContainsSubstring("V22"));

  const CommandResult seen = run_schedule({"check", "-"}, kValid, {.terminal = true});
  CHECK(seen.out == "valid: 2 devices, 2 stages, 2 microbatches\n");
}

TEST_CASE("a terminal gets colors, and blocks as wide as it is", "[tools][schedule]") {
  const CommandResult result =
      run_schedule({"check", "-"}, kLate, {.terminal = true, .color = true, .width = 20});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, ContainsSubstring("\x1b["));
  const std::string narrow =
      run_schedule({"show", "-"}, kValid, {.terminal = true, .width = 14}).out;
  CHECK(narrow ==
        "     0   1\n"
        "d0  0F0 0F1\n"
        "d1   .  1F0\n"
        "\n"
        "     2   3\n"
        "d0   .  0B0\n"
        "d1  1B0 1F1\n"
        "\n"
        "     4   5\n"
        "d0   .  0B1\n"
        "d1  1B1  .\n");
}

TEST_CASE("edges of an option replace the chain", "[tools][schedule]") {
  // Two encoders do not wait for each other: in a chain, 1F0 would be too early.
  const std::string text =
      "0F0 .   0B0\n"
      "1F0 .   1B0\n"
      ".   2F0 .\n";
  CHECK(check_json(text, 1).at("violations")[0].at("rule") == "V10");
  const std::string whole =
      "0F0 .   .   0B0\n"
      "1F0 .   .   1B0\n"
      ".   2F0 2B0 .\n";
  CHECK(check_json(whole, 1).at("violations")[0].at("rule") == "V20");
  CHECK(check_json(whole, 0, {"--graph", "0-2,1-2"}).at("valid") == true);
  const TemporaryFolder folder;
  CHECK(check_json(whole, 0, {"--graph", "@" + folder.write("e", "0-2\n1-2\n")}).at("valid") ==
        true);
}

TEST_CASE("a CSV is a chain unless edges are given, and keeps its own placement",
          "[tools][schedule]") {
  const std::string csv = "0F0,,,0B0\n1F0,,,1B0\n,2F0,2B0,\n";
  const Json wrong_graph = check_json(csv, 1, {"--strict"}).at("violations");
  REQUIRE(wrong_graph.size() == 1);
  CHECK(wrong_graph[0].at("rule") == "V32");
  CHECK_THAT(wrong_graph[0].at("message").get<std::string>(),
             ContainsSubstring("stage 1 does not wait for 0") &&
                 ContainsSubstring("expresses only chains") &&
                 ContainsSubstring("--graph 0-2,1-2"));
  // Text can state that its graph is a chain, and a fault in a chain stays a fault.
  CHECK(check_json("0F0 . . 0B0\n1F0 . . 1B0\n. 2F0 2B0 .\n", 1).at("violations").size() > 1);
  CHECK(check_json("0F0,0F1,0B0,,,0B1\n,1F0,1B0,1F1,1B1,\n", 1, {"--strict"})
            .at("violations")[0]
            .at("rule") == "V22");
  CHECK(check_json("0F0,,,0B0\n1F0,,,1B0\n2F0,2B0,,\n", 1, {"--strict"})
            .at("violations")[0]
            .at("rule") != "V32");
  CHECK(check_json(csv, 0, {"--strict", "--graph", "0-2,1-2"}).at("valid") == true);
  // In a V, stages 0 and 3 are on the first rank.
  CHECK(check_json("0F0,,,3F0,3B0,,,0B0\n,1F0,2F0,,,2B0,1B0,\n", 0).at("valid") == true);
}

TEST_CASE("the communication that a CSV lists is checked too", "[tools][schedule]") {
  const std::string good =
      "0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
  const CommandResult result = run_schedule({"check", "-"}, good);
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, ContainsSubstring("8 actions of communication"));
  // Without the second receive, 1F1 computes with a value that never came.
  const std::string without =
      "0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n";
  CHECK(check_json(without, 1).at("violations")[0].at("rule") == "V31");
}

TEST_CASE("a budget that a row would exceed breaks V30", "[tools][schedule][costs]") {
  const TemporaryFolder folder;
  const std::string costs = folder.write(
      "c.json", R"({"version": 1, "stages": {"each": [{"stage": 0, "activations": 600}]}})");
  CHECK(check_json(kValid, 0, {"--costs", costs, "--budget", "1200"}).at("valid") == true);
  const Json over = check_json(kValid, 1, {"--costs", costs, "--budget", "1199"});
  REQUIRE(over.at("violations").size() == 1);
  CHECK(over.at("violations")[0].at("rule") == "V30");
  CHECK(over.at("violations")[0].at("row") == 0);
  CHECK(over.at("violations")[0].at("task") == "0F1");
  for (const char* alone : {"--costs", "--budget"}) {
    check_message(
        run_schedule({"check", "-", alone, "1"}, kValid), 2, {"--costs FILE with --budget"});
  }
  check_message(run_schedule({"check", "-", "--costs", costs, "--budget", "8GB"}, kValid),
                2,
                {"--budget expects", "'8GB'"});
}

TEST_CASE("the reader finds the format, or is told", "[tools][schedule]") {
  CHECK(check_json(R"({"rows": [[[0,0,"F"],[0,0,"B"]]]})", 0).at("valid") == true);
  CHECK(check_json("0F0,0B0\n", 0).at("valid") == true);
  CHECK(check_json("0F0 0B0\n", 0).at("valid") == true);
  CHECK(check_json("# a, b\n@edges 0-1\n0F0 . . 0B0\n. 1F0 1B0 .\n", 0).at("valid") == true);
  CHECK(check_json("\xEF\xBB\xBF"
                   "0F0 0B0\n",
                   0)
            .at("valid") == true);
  const TemporaryFolder folder;
  // With one cell a row and no comma, only the name tells that "(0F0;..." is CSV.
  CHECK(run_schedule({"check", folder.write("x.csv", "0F0\n")}).exit_code == 1);
  CHECK(check_json("0F0\n1F0\n0B0\n", 2 - 1, {"--from", "pytorch"}).at("valid") == false);
  check_message(run_schedule({"check", "-", "--from", "json"}, kValid), 2, {"JSON"});
  check_message(
      run_schedule({"check", "-", "--from", "jsn"}, kValid), 2, {"--from", "did you mean json?"});
}

TEST_CASE("a number that was mistyped is one violation, which says what was meant",
          "[tools][schedule]") {
  const std::string typo = "@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B0\n";
  const CommandResult text = run_schedule({"check", "-"}, typo);
  CHECK(text.exit_code == 1);
  CHECK_THAT(text.err, ContainsSubstring("\nrepair: write 1B1 for 1B0 (row 1, position 3); "));
  CHECK_THAT(text.err, !ContainsSubstring("V10") && !ContainsSubstring("V29"));
  const Json found = check_json(typo, 1).at("violations");
  REQUIRE(found.size() == 1);
  CHECK(found[0].at("rule") == "V08");
  CHECK(found[0].at("message") ==
        "1B0 is at row 1, position 1 and again here, and 1B1 is missing; write 1B1 for 1B0 "
        "(row 1, position 3)");
  CHECK(found[0].at("repair") ==
        Json::parse(R"([{"row": 1, "column": 3, "task": "1B0", "meant": "1B1"}])"));
}

TEST_CASE("two mistyped numbers are two violations, and what else is wrong is told beside them",
          "[tools][schedule]") {
  const Json found =
      check_json("@form list\n@rows 3\n0F0 0F0 0B0 0B1\n1F0 1F1 1B0 1B0\n", 1).at("violations");
  REQUIRE(found.size() == 3);
  CHECK(found[0].at("rule") == "V02");
  CHECK(found[1].at("repair")[0].at("meant") == "0F1");
  CHECK(found[2].at("repair")[0].at("meant") == "1B1");
}

TEST_CASE("a task that is there twice while two are missing is no mistyped number",
          "[tools][schedule]") {
  const Json found = check_json("@microbatches 3\n@form list\n0F0 0F0 0B0\n", 1).at("violations");
  CHECK(found[0].at("rule") == "V08");
  CHECK(found[0].at("repair").empty());
  CHECK(found[1].at("rule") == "V09");
}

TEST_CASE("what cannot be read is exit status 2, with line, column and cell",
          "[tools][schedule][bad-input]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    CAPTURE(text);
    check_message(run_schedule({"check", folder.write("x", text)}), 2, parts);
    check_message(run_schedule({"check", "-"}, text), 2, {"standard input"});
  };
  refused("0F0 0B0\n1F0 what\n", {"line 2, column 5", "'what'"});
  refused("0F0,0B0\n1F0,what\n", {"line 2, column 5", "'what'"});
  refused("@pages 3\n0F0 0B0\n", {"@pages", "line 1"});
  refused("{\"rows\": [", {"JSON"});
  refused("[1, 2]", {"JSON"});
  refused(R"({"rows": [[null]], "lines": []})", {"lines"});
  refused("", {"found nothing"});
  refused(" \n\t\n", {"found nothing"});
  refused("# only a comment\n", {"row"});
  refused(std::string("\x7f\x45\x4c\x46\0\1\2\xff", 8), {"line 1, column 1"});
  refused(std::string(100, '\0'), {"line 1"});
  check_message(run_schedule({"check", "/none/x.txt"}), 2, {"no file at '/none/x.txt'"});
  check_message(run_schedule({"check", folder.path()}), 2, {"a directory at"});
  check_message(run_schedule({"check"}), 2, {"expected FILE"});
  check_message(run_schedule({"check", "a", "b"}), 2, {"'b'"});
  check_message(
      run_schedule({"check", "-", "--graph", "@-"}, kValid), 2, {"standard input", "once"});
  check_message(run_schedule({"check", "-", "--graph", "0:1"}, kValid), 2, {"--graph", "'0:1'"});
  check_message(run_schedule({"check", "-", "--graph", "@/none"}, kValid), 2, {"'/none'"});
}

}  // namespace stagecraft::tests
