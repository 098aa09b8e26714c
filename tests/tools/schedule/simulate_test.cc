/// Tests `stagecraft schedule simulate`: the numbers that programs rely on.

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

constexpr const char* kValidSchedule =
    "0F0 0F1 .   0B0 .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";

std::string make(const std::string& words) {
  const CommandResult result = run_schedule_line("make " + words);
  CAPTURE(words, result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

Json simulate_json(const std::string& text, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"simulate", "-", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const CommandResult result = run_schedule(words, text);
  CAPTURE(text, result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

}  // namespace

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
    check_message(run_schedule(words, kValidSchedule), 2, {"more than any number holds"});
  }
}

TEST_CASE("simulate for programs: fields in their order, whole numbers whole",
          "[tools][schedule][json]") {
  const CommandResult result =
      run_schedule({"simulate", "-", "--json"}, make("1f1b --devices 4 --microbatches 8"));
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        R"({"devices":4,"stages":4,"microbatches":8,"columns":22,"makespan":33,"idle":[9,9,9,9],)"
        R"("span_idle":[9,6,3,0],"bubble_fraction":[0.2727272727272727,0.2727272727272727,)"
        R"(0.2727272727272727,0.2727272727272727],"peak_in_flight":[4,3,2,1],"replicas":1,)"
        R"("hash":"e668f443e2c0cd9d",)"
        R"("causes":[{"warm_up":0,"dependency":9,"communication":0,"drain":0},)"
        R"({"warm_up":1,"dependency":6,"communication":0,"drain":2},)"
        R"({"warm_up":2,"dependency":3,"communication":0,"drain":4},)"
        R"({"warm_up":3,"dependency":0,"communication":0,"drain":6}],)"
        R"("largest_bubbles":[{"row":0,"start":4,"end":10,"cause":"dependency","before":"0B0",)"
        R"("waited_for":"1B0"},{"row":3,"start":27,"end":33,"cause":"drain"},)"
        R"({"row":1,"start":4,"end":8,"cause":"dependency","before":"1B0","waited_for":"2B0"},)"
        R"({"row":2,"start":29,"end":33,"cause":"drain"},)"
        R"({"row":3,"start":0,"end":3,"cause":"warm-up","before":"3F0","waited_for":"2F0"}],)"
        R"("critical_path":["0F0","1F0","2F0","3F0","3B0","3F1","3B1","3F2","3B2","3F3","3B3",)"
        R"("3F4","3B4","3F5","3B5","3F6","3B6","3F7","3B7","2B7","1B7","0B7"]})"
        "\n");
}

TEST_CASE("simulate tells programs why who waits, and what decides the end",
          "[tools][schedule][json]") {
  const Json found = simulate_json(kValidSchedule, {"--latency", "0.5"});
  CHECK(found.at("causes")[0] ==
        Json{{"warm_up", 0}, {"dependency", 3}, {"communication", 1}, {"drain", 0}});
  CHECK(found.at("largest_bubbles")[0] == Json{{"row", 0},
                                               {"start", 2},
                                               {"end", 4.5},
                                               {"cause", "dependency"},
                                               {"before", "0B0"},
                                               {"waited_for", "1B0"}});
  bool waits = false;
  for (const Json& bubble : found.at("largest_bubbles")) {
    waits = waits || (bubble.at("cause") == "communication" && bubble.at("before") == "0B0" &&
                      bubble.at("waited_for") == "1B0");
  }
  CHECK(waits);
  CHECK(found.at("critical_path").front() == "0F0");
  CHECK(found.at("critical_path").back() == "0B1");
  // The list is as long as the one for people, though this schedule has more.
  CHECK(simulate_json(make("1f1b --devices 8 --microbatches 8")).at("largest_bubbles").size() == 5);
}

TEST_CASE("two replicas share the microbatches", "[tools][schedule][json]") {
  const Json answer = simulate_json(make("dualpipe --devices 4 --microbatches 8"));
  CHECK(answer.at("stages") == 8);
  CHECK(answer.at("replicas") == 2);
  CHECK(answer.at("microbatches") == 8);
  CHECK(answer.at("makespan") == 26);
  CHECK(answer.at("hash") == "d001237a5a61b8e5");
}

TEST_CASE("tasks that do nothing are counted, and cost nothing", "[tools][schedule][surplus]") {
  const std::string text = std::string("@frozen 0\n") + kValidSchedule;
  const Json found = simulate_json(text);
  CHECK(found.at("surplus") == Json::parse(R"([{"stage": 0, "kind": "B", "tasks": 2}])"));
  CHECK(found.at("makespan") == 7);
  CHECK(found.at("peak_in_flight") == Json{0, 1});
  CHECK(found.at("columns") == 5);  // 0B0 and 0B1 need no wait
  CHECK(found.at("hash") == simulate_json(kValidSchedule).at("hash"));
  CHECK_FALSE(simulate_json(kValidSchedule).contains("surplus"));
  const CommandResult people = run_schedule({"simulate", "-"}, text);
  CHECK_THAT(people.out,
             ContainsSubstring("microbatches\n2 tasks do nothing: 2 B of stage 0 (no backward)\n"));
}

TEST_CASE("durations and latency decide the times, not the columns", "[tools][schedule]") {
  const std::string text = make("1f1b --devices 4 --microbatches 8");
  // It is (M + P - 1) (F + B), and F + B more per transfer and stage on the way.
  CHECK(simulate_json(text, {"--f", "2", "--b", "4"}).at("makespan") == 66);
  CHECK(simulate_json(text, {"--b", "1.5"}).at("makespan") == 27.5);
  CHECK(simulate_json(text, {"--b", "1.5"}).at("columns") == 22);
  CHECK(simulate_json(text, {"--latency", "1"}).at("makespan") > 33);
  const std::string split = make("zb-h1 --devices 4 --microbatches 12");
  CHECK(simulate_json(split, {"--f", "4", "--i", "5", "--w", "3"}).at("span_idle") ==
        Json{18, 12, 6, 0});
}

TEST_CASE("halves of a backward follow the whole that is given, and it is said",
          "[tools][schedule]") {
  const std::string split = make("zb-h1 --devices 4 --microbatches 12");
  CHECK(simulate_json(split, {"--b", "4"}) == simulate_json(split, {"--i", "2", "--w", "2"}));
  CHECK(simulate_json(split, {"--b", "4", "--i", "3"}) ==
        simulate_json(split, {"--i", "3", "--w", "1"}));
  const CommandResult told = run_schedule({"simulate", "-", "--b", "4"}, split);
  CHECK_THAT(told.err, ContainsSubstring("lacks I and W: each is half of B (B 4, I 2, W 2)"));
  CHECK(run_schedule({"simulate", "-", "--f", "3", "--b", "2"}, split).err.empty());
  check_message(run_schedule({"simulate", "-", "--b", "4", "--w", "5"}, split),
                2,
                {"--b, --i and --w", "leaves nothing of a backward of 4 for I"});
}

TEST_CASE("simulate tells people who waits for what", "[tools][schedule]") {
  const CommandResult result =
      run_schedule({"simulate", "-"}, make("1f1b --devices 4 --microbatches 8"));
  CHECK(result.exit_code == 0);
  for (const char* part : {"4 devices, 4 stages, 8 microbatches\nmakespan 33\n",
                           "row  busy  idle  bubble  span idle  in flight  warm-up  dependency  "
                           "communication  drain\n",
                           "d0     24     9   27.3%          9          4        0           9  "
                           "            0      0\n",
                           "  d0  6 from 4 to 10: dependency, 0B0 waited for 1B0\n",
                           "  d3  6 from 27 to 33: drain\n",
                           "critical path, 22 tasks\n  0F0 -> 1F0"}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
  }
  // The input of 1F0 takes 50 to arrive.
  const CommandResult far = run_schedule({"simulate", "-", "--latency", "50"}, kValidSchedule);
  CHECK_THAT(far.out, ContainsSubstring("d1  51 from 0 to 51: warm-up, 1F0 waited for 0F0\n"));
  CHECK_THAT(far.out, ContainsSubstring("communication, 0B0 waited for 1B0\n"));
}

TEST_CASE("a costs file gives times by stage, transfers by bytes, and peaks in bytes",
          "[tools][schedule][costs]") {
  const TemporaryFolder folder;
  const std::string costs = folder.write("costs.json",
                                         R"({"version": 1, "stages": {"each": [
            {"stage": 0, "F": 3, "fixed": 1000, "activations": 500, "transient": 10},
            {"stage": 1, "activations": 2048}]},
          "links": {"usual": {"bandwidth": 2}, "edge_bytes": 1}})");
  const std::string one = "0F0 . . 0B0\n. 1F0 1B0 .\n";
  const Json answer = simulate_json(one, {"--costs", costs});
  // It is 3, half a unit for the transfer, 1, 2, half a unit back, 2.
  CHECK(answer.at("makespan") == 9);
  CHECK(answer.at("peak_bytes") == Json{1510, 2048});
  CHECK(answer.size() == 15);
  const CommandResult people = run_schedule({"simulate", "-", "--costs", costs}, one);
  CHECK_THAT(people.out, ContainsSubstring("peak bytes") && ContainsSubstring("2.0 KiB"));
  const CommandResult page = run_schedule({"show", "-", "--html", "-", "--costs", costs}, one);
  CHECK(page.exit_code == 0);
  CHECK_THAT(page.out, ContainsSubstring("\"makespan\":9"));
}

TEST_CASE("a costs file that cannot be used is named", "[tools][schedule][costs][bad-input]") {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& text, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"simulate", "-", "--costs", folder.write("c.json", text)};
    words.insert(words.end(), more.begin(), more.end());
    return run_schedule(words, kValidSchedule);
  };
  check_message(with("{"), 2, {"--costs", "c.json", "line 1"});
  check_message(with(R"({"durations": {"F": 1}})"), 2, {"needs its version", "\"version\": 1"});
  check_message(with(R"({"version": 2})"), 2, {"version 2", "up to 1"});
  check_message(with(R"({"version": 1, "stages": {"group": -1}})"), 2, {"group"});
  check_message(with("{}", {"--f", "2"}), 2, {"--costs or --f", "both"});
  check_message(
      run_schedule({"simulate", "-", "--costs", "/none"}, kValidSchedule), 2, {"--costs", "/none"});
  check_message(run_schedule({"simulate", "-", "--costs", "-"}, kValidSchedule), 2, {"once"});
}

TEST_CASE("what a costs file holds that is not known is noted, and the rest used",
          "[tools][schedule][costs]") {
  const TemporaryFolder folder;
  const std::string costs =
      folder.write("c.json", R"({"version": 1, "stage": {}, "links": {"usual": {"latency": 4}}})");
  const CommandResult result = run_schedule({"simulate", "-", "--costs", costs}, kValidSchedule);
  CHECK(result.exit_code == 0);
  CHECK(result.out == run_schedule({"simulate", "-", "--latency", "4"}, kValidSchedule).out);
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
  const auto simulate = [&](const std::string& words, const std::string& costs) {
    return run_schedule({"simulate", "-", "--costs", costs}, make(words));
  };
  CHECK(simulate("1f1b --devices 2 --microbatches 2", run).err.empty());
  const CommandResult other = simulate("1f1b --devices 3 --microbatches 2", run);
  CHECK(other.exit_code == 0);
  CHECK_THAT(other.err,
             ContainsSubstring("note: --costs '" + run +
                               "': it has the times of 2 stages, but the schedule has 3 stages; "
                               "missing values get their defaults\n"));
  const std::string profile = folder.write(
      "profile.json", R"({"version": 1, "operators": [{"id": 0, "name": "aten::mm"}]})");
  check_message(simulate("1f1b --devices 2 --microbatches 2", profile),
                2,
                {"profile.json", "operators but not of stages", "train --dry-run", "--costs-out"});
}

TEST_CASE("no line is wider than the terminal", "[tools][schedule]") {
  const std::string text = make("1f1b --devices 4 --microbatches 8");
  const int width = GENERATE(60, 80, 200);
  const std::string out =
      run_schedule({"simulate", "-"}, text, {.terminal = true, .width = width}).out;
  CAPTURE(width, out);
  for (std::size_t begin = 0; begin < out.size();) {
    const std::size_t end = out.find('\n', begin);
    CHECK(end - begin <= static_cast<std::size_t>(width));
    begin = end + 1;
  }
  CHECK_THAT(out, ContainsSubstring("communication"));
}

TEST_CASE("what breaks a rule is not simulated", "[tools][schedule]") {
  check_message(run_schedule({"simulate", "-"}, "0F0 .\n"),
                1,
                {"standard input has 1 violation", "V10", "stagecraft schedule check"});
}

TEST_CASE("durations that are no numbers are wrong usage", "[tools][schedule][bad-input]") {
  for (const char* value : {"-1", "x", "nan", "inf", "1e999", ""}) {
    CAPTURE(value);
    check_message(
        run_schedule({"simulate", "-", "--f", value}, kValidSchedule), 2, {"--f expects"});
  }
  check_message(run_schedule({"simulate", "-", "--g", "1"}, kValidSchedule), 2, {"'--g'"});
}

}  // namespace stagecraft::tests
