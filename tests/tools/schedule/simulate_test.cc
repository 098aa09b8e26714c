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

TEST_CASE("simulate for programs: fields in their order, whole numbers whole",
          "[tools][schedule][json]") {
  const CommandResult result =
      run_schedule({"simulate", "-", "--json"}, make("1f1b --devices 4 --microbatches 8"));
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        R"({"stagecraft":"schedule simulate","version":1,)"
        R"("devices":4,"stages":4,"microbatches":8,"columns":22,"makespan":33,"idle":[9,9,9,9],)"
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
  CHECK(answer.size() == 17);
  const CommandResult people = run_schedule({"simulate", "-", "--costs", costs}, one);
  CHECK_THAT(people.out, ContainsSubstring("peak bytes") && ContainsSubstring("2.0 KiB"));
  const CommandResult page = run_schedule({"show", "-", "--html", "-", "--costs", costs}, one);
  CHECK(page.exit_code == 0);
  CHECK_THAT(page.out, ContainsSubstring("\"makespan\":9"));
}

TEST_CASE("what breaks a rule is not simulated", "[tools][schedule]") {
  check_message(run_schedule({"simulate", "-"}, "0F0 .\n"),
                1,
                {"standard input has 1 violation", "V10", "stagecraft schedule check"});
}

}  // namespace stagecraft::tests
