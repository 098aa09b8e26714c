/// Tests the options that give costs to a command: durations, and a costs.json.

#include "stagecraft/tools/schedule/input/cost_options.h"

#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kTimedSchedule =
    "0F0 0F1 .   0B0 .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";

CommandResult simulated(std::vector<std::string> words) {
  words.insert(words.begin(), {"simulate", "-"});
  return run_schedule(words, kTimedSchedule);
}

/// Simulates a schedule with split backwards.
CommandResult simulated_split(const std::string& words) {
  return run_schedule_line("make zb-h1 --devices 4 --microbatches 12 | simulate - --json " + words);
}

TEST_CASE("durations that are no numbers are wrong usage", "[tools][schedule][bad-input]") {
  for (const char* value : {"-1", "x", "nan", "inf", "1e999", ""}) {
    CAPTURE(value);
    check_message(simulated({"--f", value}), 2, {"--f expects"});
  }
  check_message(simulated({"--g", "1"}), 2, {"'--g'"});
}

TEST_CASE("halves of a backward follow the whole that is given, and it is said",
          "[tools][schedule]") {
  CHECK(simulated_split("--b 4").exit_code == 0);
  CHECK(simulated_split("--b 4").out == simulated_split("--i 2 --w 2").out);
  CHECK(simulated_split("--b 4 --i 3").out == simulated_split("--i 3 --w 1").out);
  CHECK_THAT(simulated_split("--b 4").err,
             ContainsSubstring("lacks I and W: each is half of B (B 4, I 2, W 2)"));
  CHECK(simulated_split("--f 3 --b 2").err.empty());
  check_message(simulated_split("--b 4 --w 5"),
                2,
                {"--b, --i and --w", "leaves nothing of a backward of 4 for I"});
}

TEST_CASE("times that add up to no number are refused", "[tools][schedule]") {
  // The idle time of one row is a finite number, but the sum over all rows is not.
  check_message(run_schedule({"simulate", "-", "--b", "8e307", "--i", "4e307", "--w", "4e307"},
                             "0F0 . . 0B0\n. 1F0 1B0 .\n"),
                2,
                {"more than any number holds"});
  for (const char* command : {"simulate", "show"}) {
    std::vector<std::string> words{
        command, "-", "--f", "1e308", "--b", "1e308", "--i", "5e307", "--w", "5e307"};
    if (command == std::string("show")) {
      words.insert(words.end(), {"--html", "-"});
    }
    check_message(run_schedule(words, kTimedSchedule), 2, {"more than any number holds"});
  }
}

TEST_CASE("a costs file that cannot be used is named", "[tools][schedule][costs][bad-input]") {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& text, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"--costs", folder.write("c.json", text)};
    words.insert(words.end(), more.begin(), more.end());
    return simulated(words);
  };
  check_message(with("{"), 2, {"--costs", "c.json", "line 1"});
  check_message(with(R"({"durations": {"F": 1}})"), 2, {"needs its version", "\"version\": 1"});
  check_message(with(R"({"version": 2})"), 2, {"version 2", "up to 1"});
  check_message(with(R"({"version": 1, "stages": {"group": -1}})"), 2, {"group"});
  for (const char* time : {"--f", "--b", "--i", "--w", "--latency"}) {
    check_message(with("{}", {time, "2"}), 2, {"--costs or " + std::string(time), "both"});
  }
  check_message(simulated({"--costs", "/none"}), 2, {"--costs", "/none"});
  check_message(simulated({"--costs", "-"}), 2, {"once"});
}

TEST_CASE("what a costs file holds that is not known is noted, and the rest used",
          "[tools][schedule][costs]") {
  const TemporaryFolder folder;
  const std::string costs =
      folder.write("c.json", R"({"version": 1, "stage": {}, "links": {"usual": {"latency": 4}}})");
  const CommandResult result = simulated({"--costs", costs});
  CHECK(result.exit_code == 0);
  CHECK(result.out == simulated({"--latency", "4"}).out);
  CHECK_THAT(result.err,
             ContainsSubstring("note: --costs") && ContainsSubstring("section 'stage'") &&
                 ContainsSubstring("did you mean stages?"));
}

TEST_CASE("costs of another schedule's stages are noted, those of operators alone refused",
          "[tools][schedule][costs]") {
  const TemporaryFolder folder;
  const std::string run = folder.write("run.json", R"({"version": 1, "stages": {"each": [
      {"stage": 0, "F": 0.1, "B": 0.2, "I": 0.1, "W": 0.1},
      {"stage": 1, "F": 0.1, "B": 0.2, "I": 0.1, "W": 0.1}]}})");
  const auto simulate = [](const std::string& devices, const std::string& costs) {
    return run_schedule_line("make 1f1b --devices " + devices +
                             " --microbatches 2 | simulate - --costs " + costs);
  };
  CHECK(simulate("2", run).err.empty());
  const CommandResult other = simulate("3", run);
  CHECK(other.exit_code == 0);
  CHECK_THAT(other.err,
             ContainsSubstring("note: --costs '" + run +
                               "': it has the times of 2 stages, but the schedule has 3 stages; "
                               "missing values get their defaults\n"));
  const std::string profile = folder.write(
      "profile.json", R"({"version": 1, "operators": [{"id": 0, "name": "aten::mm"}]})");
  check_message(simulate("2", profile),
                2,
                {"profile.json", "operators but not of stages", "train --dry-run", "--costs-out"});
}

TEST_CASE("costs know the memory of a schedule if its stages hold bytes",
          "[tools][schedule][costs]") {
  CHECK_FALSE(tools::knows_memory({}));
  Costs costs;
  costs.stages.usual.forward = 3;
  costs.links.bytes = 1024;  // a transfer holds no memory
  CHECK_FALSE(tools::knows_memory(costs));
  for (const auto bytes : {&MemoryModel::fixed,
                           &MemoryModel::activations,
                           &MemoryModel::transient,
                           &MemoryModel::replayed}) {
    Costs held;
    held.stages.memory.*bytes = {0, 512};
    CHECK(tools::knows_memory(held));
  }
}

}  // namespace
}  // namespace stagecraft::tests
