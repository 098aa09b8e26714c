#include "stagecraft/scheduler/formats/json/json.h"

#include <algorithm>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using namespace cells;
using Catch::Matchers::ContainsSubstring;

std::string complaint(const std::string& text) {
  return refusal([&] { (void)parse_json(text); }, Errc::ScheduleParse);
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

TEST_CASE("frozen stages survive JSON", "[scheduler][json][surplus]") {
  const std::string rows =
      R"("form": "list", "rows": [[[0, 0, "F"]], [[1, 0, "F"], [1, 0, "B"]]]})";
  const Schedule schedule = parse_json(R"({"frozen": [0], )" + rows);
  CHECK(schedule.stage_graph().frozen() == std::vector<int>{0});
  CHECK(parse_json(to_json(schedule)).stage_graph().frozen() == std::vector<int>{0});
  CHECK(rules(R"({"frozen": [0], )" + rows).empty());
  CHECK(rules(R"({"frozen": [], )" + rows) == std::vector<std::string>{"V10"});
  for (const char* wrong : {"0", "[[0, 1]]", "[-1]", "[7]", "[1e9]", "[\"0\"]"}) {
    CAPTURE(wrong);
    CHECK_THAT(complaint(std::string(R"({"frozen": )") + wrong + ", " + rows),
               ContainsSubstring("line 1, column"));
  }
  CHECK_THAT(complaint(R"({"frozen": [0], "frozen": [0], )" + rows), ContainsSubstring("twice"));
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
             ContainsSubstring("not JSON") && ContainsSubstring("line 1"));
  CHECK_THAT(complaint("{\"rows\": [[null]], \"color\": 1}"), ContainsSubstring("color"));
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
  (void)complaint(bad);
}

TEST_CASE("every complaint about JSON says where", "[scheduler][json]") {
  CHECK_THAT(complaint("{\n  \"rows\": [[null]],\n  \"stage\": 1}"),
             ContainsSubstring("line 3, column 3") && ContainsSubstring("did you mean stages?"));
  CHECK_THAT(complaint("{\"stages\":\n 1000000000, \"rows\": [[null]]}"),
             ContainsSubstring("line 2, column 2") && ContainsSubstring("'1000000000'"));
  CHECK_THAT(complaint("{\"rows\": [[null],\n 3]}"),
             ContainsSubstring("line 2, column 2") && ContainsSubstring("rows[1]"));
  CHECK_THAT(complaint("{\"rows\": [[null,\n  [70000, 0, \"F\"]]]}"),
             ContainsSubstring("line 2, column 3") && ContainsSubstring("70000"));
  CHECK_THAT(complaint("{\"rows\": [[[0, 999999999, \"F\"]]]}"),
             ContainsSubstring("line 1, column 12"));
  CHECK_THAT(complaint("{\"rows\": [[null]], \"rows\": [[null]]}"), ContainsSubstring("twice"));
  CHECK_THAT(complaint("{\"rows\": [[null]], \"edges\": [[0, 1],\n [0, 1, 2]]}"),
             ContainsSubstring("line 2, column 2"));
  CHECK_THAT(complaint("{\"rows\": [[null]], \"stages\": 2,\n \"edges\": [[0, 5]]}"),
             ContainsSubstring("line 2, column 11"));
}

TEST_CASE("all that is wrong in a JSON file is told at once, each with its place and path",
          "[scheduler][json]") {
  const std::string all = complaint(
      "{\"form\": \"table\",\n"
      " \"color\": [1, {\"a\": 2}],\n"
      " \"stages\": 0,\n"
      " \"edges\": [[0, 1], [0], 7, [1, 2, 3]],\n"
      " \"frozen\": [0, \"1\"],\n"
      " \"rows\": [[[70000, 0, \"F\"], [0, 0, \"B\"]],\n"
      "  3,\n"
      "  [null, [[0, 0, \"F\"], [1, 99999999, \"B\"]]]],\n"
      " \"stages\": 2}");
  CHECK_THAT(all, ContainsSubstring("11 faults\nline 1, column 10: field \"form\""));
  CHECK_THAT(all, ContainsSubstring("\nline 2, column 2: unknown field 'color'"));
  CHECK_THAT(all, ContainsSubstring("\nline 3, column 12: field \"stages\" needs"));
  CHECK_THAT(all, ContainsSubstring("\nline 4, column 20: edges[1] needs two stages"));
  CHECK_THAT(all, ContainsSubstring("\nline 4, column 25: edges[2] needs two stages"));
  CHECK_THAT(all, ContainsSubstring("\nline 4, column 28: edges[3] needs two stages"));
  CHECK_THAT(all, ContainsSubstring("\nline 5, column 16: frozen[1] needs"));
  CHECK_THAT(all, ContainsSubstring("\nline 6, column 12: rows[0][0]: [70000, 0, ...]"));
  CHECK_THAT(all, ContainsSubstring("\nline 7, column 3: rows[1] needs a list of cells"));
  CHECK_THAT(all, ContainsSubstring("\nline 8, column 24: rows[2][1][1]: [1, 99999999, ...]"));
  CHECK_THAT(all, ContainsSubstring("\nline 9, column 2: field \"stages\" appears twice"));
  CHECK(all.find("stages go up to") == all.rfind("stages go up to"));
}

TEST_CASE("faults of a graph that only its fields together have are told at once",
          "[scheduler][json]") {
  const std::string all = complaint(
      "{\"stages\": 2, \"rows\": [[null]],\n"
      " \"edges\": [[0, 5]],\n"
      " \"frozen\": [7]}");
  CHECK_THAT(all, ContainsSubstring("2 faults\nline 2, column 11: "));
  CHECK_THAT(all, ContainsSubstring("\nline 3, column 12: "));
}

TEST_CASE("many faults of a JSON file are counted, and a text that ceases to be JSON has one",
          "[scheduler][json]") {
  std::string cells = "[70000, 0, \"F\"]";
  for (int i = 1; i < 100; ++i) {
    cells += ", [70000, 0, \"F\"]";
  }
  const std::string all = complaint("{\"rows\": [[" + cells + "]]}");
  CHECK_THAT(all, ContainsSubstring("100 faults\n") && ContainsSubstring("\nand 80 more"));
  CHECK_THAT(all, ContainsSubstring("rows[0][19]") && !ContainsSubstring("rows[0][20]"));
  for (int i = 0; i < 5000; ++i) {
    cells += ", [70000, 0, \"F\"]";
  }
  CHECK_THAT(complaint("{\"rows\": [[" + cells), ContainsSubstring("at least 1000 faults"));
  const std::string broken = complaint("{\"rows\": [[[70000, 0, \"F\"], [0, 0 \"F\"]]]}");
  CHECK_THAT(broken, ContainsSubstring("not JSON") && !ContainsSubstring("70000"));
}

TEST_CASE("what is not quite JSON is refused", "[scheduler][json]") {
  const char* bad = GENERATE("{\"rows\": [[null,]]}",
                             "{\"rows\": [[null]],}",
                             "{\"rows\": [[null]]} x",
                             "{\"rows\" [[null]]}",
                             "{rows: [[null]]}",
                             "{\"rows\": [[nul]]}",
                             "{\"rows\": [[[01, 0, \"F\"]]]}",
                             "{\"rows\": [[[0, 0., \"F\"]]]}",
                             "{\"rows\": [[[0, 1e, \"F\"]]]}",
                             "{\"rows\": [[[0, -, \"F\"]]]}",
                             "{\"rows\": [[\"a\nb\"]]}",
                             "{\"rows\": [[\"\\x\"]]}",
                             "{\"rows\": [[\"\\u12g4\"]]}",
                             "{\"rows\": [[\"",
                             "{\"rows\": [[null]]",
                             "{\"rows\": [[null null]]}");
  CAPTURE(bad);
  CHECK_THAT(complaint(bad), ContainsSubstring("not JSON") && ContainsSubstring("line 1, column"));
}

TEST_CASE("anything that is JSON may stand in a cell and breaks V03", "[scheduler][json]") {
  const char* odd = GENERATE("{\"a\": [1, {\"b\": true}], \"c\": null}",
                             "\"\\u0041\\n\\\"\\u20ac\"",
                             "-12.5e+3",
                             "false",
                             "[0, 0, \"F\", 1]",
                             "[0, 0.0, \"F\"]",
                             "[[0, 0, \"F\"]]",
                             "[0, [0], \"F\"]");
  CAPTURE(odd);
  const auto broken =
      rules(std::string("{\"rows\": [[[0, 0, \"F\"], [0, 0, \"B\"], ") + odd + "]]}");
  CHECK(std::ranges::count(broken, "V03") == 1);
}

TEST_CASE("escapes spell the same words", "[scheduler][json]") {
  CHECK(parse_json("\xEF\xBB\xBF{\"\\u0072ows\": [[[0, 0, \"\\u0046\"]]]}") == Schedule{{F(0, 0)}});
}

TEST_CASE("a number in JSON buys no memory", "[scheduler][json]") {
  for (const char* field : {"devices", "stages", "microbatches"}) {
    CAPTURE(field);
    CHECK_THAT(complaint(std::string("{\"") + field + "\": 2000000000, \"rows\": [[null]]}"),
               ContainsSubstring(field) && ContainsSubstring("'2000000000'"));
  }
  CHECK_THAT(complaint("{\"edges\": [[0, 65536]], \"rows\": [[null]]}"),
             ContainsSubstring("below 65536"));
  std::string rows = "{\"rows\": [[]";
  for (int r = 0; r < kMaxStages; ++r) {
    rows += ",[]";
  }
  CHECK_THAT(complaint(rows + "]}"), ContainsSubstring("at most 65536 rows"));
}

TEST_CASE("deep nesting does not reach the stack", "[scheduler][json]") {
  (void)complaint(std::string(200'000, '['));
  CHECK_NOTHROW(
      complaint("{\"rows\": [[" + std::string(200'000, '[') + std::string(200'000, ']') + "]]}"));
}

}  // namespace
}  // namespace stagecraft
