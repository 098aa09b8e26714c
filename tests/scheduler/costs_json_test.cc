#include "stagecraft/scheduler/formats/costs_json.h"

#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string failure_of(const std::string& text) {
  try {
    (void)parse_costs(text);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::ScheduleParse);
    return error.message();
  }
  return "no failure";
}

TEST_CASE("an empty object states the defaults", "[scheduler][costs]") {
  CHECK(parse_costs("{}") == Costs{});
}

TEST_CASE("every field arrives where it belongs, in any order", "[scheduler][costs]") {
  const Costs costs = parse_costs(R"({
    "stages": [{"stage": 2, "F": 5, "fixed": 100, "activations": 8, "transient": 1},
               {"activations": 4, "stage": 0}],
    "input_release": 0.25,
    "durations": {"F": 3, "B": 6, "I": 4, "W": 2, "U": 1},
    "group": 7, "groups": [{"stages": [0, 3], "duration": 6.5}],
    "link": {"latency": 0.5, "bandwidth": 100},
    "links": [{"from": 1, "to": 0, "latency": 2}],
    "edge_bytes": 50, "edges": [{"from": 0, "to": 1, "bytes": 75}]})");
  const Durations usual{
      .forward = 3, .backward = 6, .backward_input = 4, .backward_weight = 2, .update = 1};
  CHECK(costs.times.usual == usual);
  REQUIRE(costs.times.stages.size() == 3);
  CHECK(costs.times.stages[0] == usual);
  CHECK(costs.times.stages[2].forward == 5);
  CHECK(costs.times.stages[2].backward == 6);
  CHECK(costs.times.group == 7);
  CHECK(costs.times.groups.at({0, 3}) == 6.5);
  CHECK(costs.times.transfer({0, 1}, 0, 1) == 0.5 + 75.0 / 100);
  CHECK(costs.times.transfer({0, 1}, 1, 0) == 2);
  CHECK(costs.times.transfer({1, 2}, 1, 2) == 0.5 + 50.0 / 100);
  CHECK(costs.times.transfer({1, 2}, 1, 1) == 0);
  CHECK(costs.memory.fixed == std::vector<double>{0, 0, 100});
  CHECK(costs.memory.activations == std::vector<double>{4, 0, 8});
  CHECK(costs.memory.input_release == 0.25);
}

TEST_CASE("what is written is read back", "[scheduler][costs]") {
  Costs costs;
  costs.times.usual.forward = 0.1;
  costs.times.stages = {costs.times.usual, {.forward = 1e-7, .backward = 1.0 / 3}};
  costs.times.group = 2.5;
  costs.times.groups[{1, 0}] = 2;
  costs.times.link = {.latency = 1e-5, .bandwidth = 1e10};
  costs.times.links[{0, 1}] = {.latency = 3};
  costs.times.bytes = 1e6;
  costs.times.edge_bytes[{0, 1}] = 12345678;
  costs.memory.fixed = {1, 2};
  costs.memory.activations = {3, 4};
  costs.memory.input_release = 0.5;
  CHECK(parse_costs(to_json(costs)) == costs);
  CHECK(parse_costs(to_json({})) == Costs{});
}

TEST_CASE("what is not understood is named with its place and what would do",
          "[scheduler][costs]") {
  CHECK_THAT(failure_of("{\"duration\": {}}"),
             ContainsSubstring("line 1, column 2") && ContainsSubstring("did you mean durations?"));
  CHECK_THAT(failure_of("{\"durations\":\n  {\"F\": -1}}"),
             ContainsSubstring("line 2, column 9") && ContainsSubstring("\"F\"") &&
                 ContainsSubstring("at least 0"));
  CHECK_THAT(failure_of("{\"group\": \"2\"}"), ContainsSubstring("\"group\" wants a number"));
  CHECK_THAT(failure_of("{\"group\": 1, \"group\": 2}"), ContainsSubstring("twice"));
  CHECK_THAT(failure_of("{\"group\": 1e999}"), ContainsSubstring("wants a number"));
  CHECK_THAT(failure_of("{\"stages\": [{\"F\": 1}]}"), ContainsSubstring("\"stage\": 3"));
  CHECK_THAT(failure_of("{\"stages\": [{\"stage\": 2000000000}]}"),
             ContainsSubstring("from 0 to 65535"));
  CHECK_THAT(failure_of("{\"stages\": [{\"stage\": 1}, {\"stage\": 1}]}"),
             ContainsSubstring("stage 1 appears twice"));
  CHECK_THAT(failure_of("{\"links\": [{\"from\": 1}]}"), ContainsSubstring("both its ends"));
  CHECK_THAT(failure_of("{\"link\": {\"bandwidth\": 0}}"), ContainsSubstring("above 0"));
  CHECK_THAT(failure_of("{\"groups\": [{\"stages\": [1], \"duration\": 2}]}"),
             ContainsSubstring("\"groups\" wants"));
  CHECK_THAT(failure_of("{\"input_release\": 2}"), ContainsSubstring("from 0 to 1"));
  CHECK_THAT(failure_of("[]"), ContainsSubstring("want an object"));
  CHECK(failure_of("{\"group\": 1") != "no failure");
  CHECK(failure_of("") != "no failure");
}

}  // namespace
}  // namespace stagecraft
