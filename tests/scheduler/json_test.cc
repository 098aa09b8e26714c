#include "stagecraft/scheduler/formats/json.h"

#include <algorithm>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/registry.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace cells;
using Catch::Matchers::ContainsSubstring;

std::string complaint(const std::string& text) {
  try {
    (void)parse_json(text);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::ScheduleParse);
    return error.message();
  }
  return "no error";
}

std::vector<std::string> rules(const std::string& text) {
  const Schedule schedule = parse_json(text);
  std::vector<std::string> list;
  for (const Violation& v : validate(schedule, schedule.stage_graph())) {
    list.push_back(v.rule);
  }
  return list;
}

TEST_CASE("JSON says the same as C++", "[scheduler][json]") {
  const Schedule parsed = parse_json(R"({"rows": [[[0, 0, "F"], null, [0, 0, "B"], [0, 0, "U"]],
                                                   [[[1, 7, "F"], [2, 3, "B"]]]]})");
  CHECK(parsed == Schedule{{F(0, 0), idle, B(0, 0), U(0)}, {overlap(F(1, 7), B(2, 3))}});
}

TEST_CASE("every builder's schedule survives JSON", "[scheduler][json]") {
  for (const BuilderInfo& builder : builders()) {
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request = {.microbatches = 8, .graph = StageGraph::from_edges(3, {{0, 2}, {1, 2}})};
    }
    CAPTURE(builder.name);
    const Schedule schedule = build_schedule(builder.name, request);
    for (const Schedule& form : {schedule, schedule.to_list()}) {
      const Schedule back = parse_json(to_json(form));
      CHECK(back == form);
      CHECK(back.stage_graph().edges() == form.stage_graph().edges());
      CHECK(back.stage_graph().replica_pairs() == form.stage_graph().replica_pairs());
      CHECK(back.microbatches() == form.microbatches());
    }
  }
}

TEST_CASE("cells of another shape and unknown kinds break V03 and V06", "[scheduler][json]") {
  CHECK(rules(R"({"rows": [[[0, 0, "F"], [0, 0, "B"], "0F0"]]})") ==
        std::vector<std::string>{"V03"});
  CHECK(rules(R"({"rows": [[[0, 0, "F"], [0, 0, "B"], [0, 0]]]})") ==
        std::vector<std::string>{"V03"});
  CHECK(rules(R"({"rows": [[[0, 0, "F"], [0, 0, "B"], []]]})") == std::vector<std::string>{"V03"});
  CHECK(rules(R"({"rows": [[[0, 0, "F"], [0, 0, "B"], [0, 99999999999999999999, "F"]]]})") ==
        std::vector<std::string>{"V03"});
  CHECK(rules(R"({"rows": [[[0, 0, "F"], [0, 0, "B"], [0, 0, "X"]]]})") ==
        std::vector<std::string>{"V06"});
}

TEST_CASE("what is no schedule is refused", "[scheduler][json]") {
  CHECK_THAT(complaint("{\"rows\": [[}"),
             ContainsSubstring("no JSON") && ContainsSubstring("line 1"));
  CHECK_THAT(complaint("{\"rows\": [[null]], \"colour\": 1}"), ContainsSubstring("colour"));
  const char* bad = GENERATE("",
                             "[]",
                             "3",
                             "{}",
                             R"({"rows": []})",
                             R"({"rows": [3]})",
                             R"({"rows": {"a": 1}})",
                             R"({"rows": [[null]], "form": "table"})",
                             R"({"rows": [[null]], "form": 3})",
                             R"({"rows": [[null]], "stages": 0})",
                             R"({"rows": [[null]], "stages": 1000000})",
                             R"({"rows": [[null]], "microbatches": "8"})",
                             R"({"rows": [[null]], "edges": 3})",
                             R"({"rows": [[null]], "edges": [[0]]})",
                             R"({"rows": [[null]], "edges": [[0, -1]]})",
                             R"({"rows": [[null]], "stages": 2, "edges": [[0, 5]]})",
                             R"({"rows": [[null]], "replicas": [[1, 1]]})");
  CAPTURE(bad);
  CHECK(complaint(bad) != "no error");
}

TEST_CASE("deep nesting does not reach the stack", "[scheduler][json]") {
  CHECK(complaint(std::string(200'000, '[')) != "no error");
  CHECK_NOTHROW(
      complaint("{\"rows\": [[" + std::string(200'000, '[') + std::string(200'000, ']') + "]]}"));
}

}  // namespace
}  // namespace stagecraft
