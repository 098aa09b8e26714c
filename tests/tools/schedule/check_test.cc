/// Tests `stagecraft schedule check`: faults are reported to people and programs.

#include <algorithm>

#include <fmt/format.h>
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

TEST_CASE("check for programs says rule, place, task, message, cycle and repair",
          "[tools][schedule][json]") {
  CHECK(check_json(kValid, 0) == Json{{"stagecraft", "schedule check"},
                                      {"version", 1},
                                      {"valid", true},
                                      {"violations", Json::array()}});

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

  const Json typo = check_json("@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B0\n", 1);
  REQUIRE(typo.at("violations").size() == 1);
  CHECK(typo.at("violations")[0].at("repair") ==
        Json::parse(R"([{"row": 1, "column": 3, "task": "1B0", "meant": "1B1"}])"));
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
      R"({"stagecraft":"schedule check","version":1,"valid":false,"violations":[)"
      R"({"rule":"V22","row":0,"column":2,"task":"0B0","message":")"));
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

TEST_CASE("--color says whether there are colors, on a terminal or not", "[tools][schedule]") {
  const auto colored = [](const std::string& command, const char* when, const Screen& screen) {
    const CommandResult result = run_schedule({command, "-", "--color", when}, kLate, screen);
    return (result.out + result.err).find("\x1b[") != std::string::npos;
  };
  const Screen terminal{.terminal = true, .color = true};
  for (const char* command : {"check", "show"}) {
    CAPTURE(command);
    CHECK(colored(command, "always", {}));
    CHECK(colored(command, "auto", terminal));
    CHECK_FALSE(colored(command, "auto", {}));
    CHECK_FALSE(colored(command, "never", terminal));
    check_message(run_schedule({command, "-", "--color", "red"}, kLate),
                  2,
                  {"--color expects auto, always or never, found 'red'"});
  }
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
  CHECK(check_json(kValid, 0, {"--costs", costs, "--budget", "1.5K"}).at("valid") == true);
  const CommandResult small =
      run_schedule({"check", "-", "--costs", costs, "--budget", "1K"}, kValid);
  CAPTURE(small.err);
  CHECK_THAT(small.err,
             ContainsSubstring("row 0 holds 1.2 KiB at 0F1 (row 0, column 1), 176 B more than its "
                               "budget of 1.0 KiB"));
  check_message(run_schedule({"check", "-", "--zero", "1"}, kValid),
                2,
                {"expected --zero with --costs FILE and --budget BYTES"});
  for (const char* wrong : {"4X", "-1G", "1e30G", "0", ""}) {
    check_message(run_schedule({"check", "-", "--costs", costs, "--budget", wrong}, kValid),
                  2,
                  {"--budget expects a number of bytes", fmt::format("'{}'", wrong)});
  }
}

TEST_CASE("a budget of copies counts what they share", "[tools][schedule][costs][strategies]") {
  const TemporaryFolder folder;
  const std::string costs = folder.write("c.json",
                                         R"({"version": 1, "stages": {"each": [
          {"stage": 0, "fixed": 4000, "trained": 1000, "states": 2000, "activations": 100}]}})");
  const std::string copies = "@place 0=0,1\n0F0 0B0\n";
  const auto fits = [&](const std::string& budget, const std::string& level, bool expected) {
    const Json verdict = check_json(
        copies, expected ? 0 : 1, {"--costs", costs, "--budget", budget, "--zero", level});
    CHECK(verdict.at("valid") == expected);
  };
  fits("4100", "0", true);
  fits("4099", "0", false);
  fits("3500", "1", true);  // half of the states, and half of a sum after the tasks
  fits("3499", "1", false);
  const auto refused = [&](const std::string& schedule,
                           const std::string& file,
                           const char* level,
                           const std::string& because) {
    check_message(
        run_schedule({"check", "-", "--costs", file, "--budget", "1K", "--zero", level}, schedule),
        2,
        {because});
  };
  refused(kValid, costs, "1", "the schedule has no copies");
  refused(
      "@microbatches 4\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 .   .   0B0 0F1 .   .   0B1 .   3F0 3F1 3B0 3B1 .   .\n"
      ".   1F0 1B0 .   .   1F1 1B1 .   2F0 2F1 .   .   .   2B0 2B1\n",
      costs,
      "2",
      "--zero 2: stages 0 and 2 are copies of one stage");
  check_json("@edges 0-1,2-3\n@replicas 0=2,1=3\n0F0 3F0 3B0 0B0\n2F0 1F0 1B0 2B0\n",
             0,
             {"--costs", costs, "--budget", "4G", "--zero", "2"});
  const std::string unknown =
      folder.write("u.json", R"({"version": 1, "stages": {"each": [{"stage": 0, "fixed": 4}]}})");
  refused(copies, unknown, "1", "add \"trained\" and \"states\"");
  const std::string more = folder.write(
      "m.json", R"({"version": 1, "stages": {"each": [{"stage": 0, "fixed": 4, "trained": 3}]}})");
  refused(copies, more, "1", "stage 0 holds 4 B of \"fixed\"");
}

}  // namespace stagecraft::tests
