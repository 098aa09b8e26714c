#include "stagecraft/scheduler/rules/validate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tests/scheduler/rules/codes.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace cells;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using test::codes;
using test::Rules;

std::vector<Violation> check(const Schedule& schedule, const ValidateOptions& options = {}) {
  return validate(schedule, schedule.stage_graph(), options);
}

std::vector<Violation> check(const char* text, const ValidateOptions& options = {}) {
  return check(Schedule::parse(text), options);
}

Rules codes(const char* text, const ValidateOptions& options = {}) {
  return codes(check(text, options));
}

/// Returns the violation of `rule`, which must exist.
Violation only(const std::vector<Violation>& violations, const std::string& rule) {
  const auto found = std::ranges::find(violations, rule, &Violation::rule);
  REQUIRE(found != violations.end());
  return *found;
}

const ValidateOptions kTwo{.microbatches = 2};

TEST_CASE("a valid schedule has no violation", "[scheduler][validate]") {
  CHECK(codes("0F0 0F1 .   0B0 .   0B1\n.   1F0 1B0 1F1 1B1 .").empty());
  CHECK(codes("@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1").empty());
  CHECK(codes("0F0 0F1 . 0I0 0W0 0I1 0W1 0U\n. 1F0 1I0 1F1 1I1 1W0 1W1 1U").empty());
}

TEST_CASE("builders make valid schedules", "[scheduler][validate]") {
  const int stages = GENERATE(range(1, 9));
  const int microbatches = GENERATE(1, 2, 3, 8, 24);
  for (const Schedule& schedule : {gpipe(stages, microbatches),
                                   one_f_one_b(stages, microbatches),
                                   gpipe(stages, microbatches, {.reverse_backward = true})}) {
    CHECK(codes(check(schedule)).empty());
    CHECK(codes(check(schedule.to_list())).empty());
  }
}

// Each case has one fault in the smallest pipeline, and lists exactly the rules that it breaks.

TEST_CASE("a forward before its producer breaks V20", "[scheduler][validate]") {
  const auto found = check("0F0 0F1 . 0B0 . 0B1\n1F0 . 1B0 1F1 1B1 .", kTwo);
  CHECK(codes(found) == Rules{"V20"});
  CHECK(found[0].row == 1);
  CHECK(found[0].column == 0);
  CHECK(to_string(*found[0].task) == "1F0");
  CHECK(found[0].missing == "0F0");
  CHECK_THAT(found[0].message, ContainsSubstring("move 1F0 to column 1"));
}

TEST_CASE("a backward before its own forward breaks V21", "[scheduler][validate]") {
  const auto found = check("0F0 0F1 . 0B0 . 0B1\n. 1B0 1F0 1F1 1B1 .", kTwo);
  CHECK(codes(found) == Rules{"V21"});
  CHECK(found[0].missing == "1F0");
}

TEST_CASE("a backward before its consumer's breaks V22", "[scheduler][validate]") {
  const auto found = check("0F0 0F1 0B0 . . 0B1\n. 1F0 1B0 1F1 1B1 .", kTwo);
  CHECK(codes(found) == Rules{"V22"});
  CHECK(found[0].missing == "1B0");
  CHECK(found[0].cells == std::vector<std::pair<int, int>>{{0, 2}, {1, 2}});
}

TEST_CASE("one forward twice and another not at all", "[scheduler][validate]") {
  const auto found = check("0F0 0F0 . 0B0 . 0B1\n. 1F0 1B0 1F1 1B1 .", kTwo);
  CHECK(codes(found) == Rules{"V08", "V09", "V20", "V21"});
  CHECK(to_string(*only(found, "V20").task) == "1F1");
  CHECK(to_string(*only(found, "V21").task) == "0B1");
  CHECK_THAT(only(found, "V08").message,
             ContainsSubstring("row 0, column 0") && ContainsSubstring("row 0, column 1"));
  CHECK_THAT(only(found, "V09").message,
             ContainsSubstring("stage 0") && ContainsSubstring("microbatch 1"));
}

TEST_CASE("two forwards on each other's rows break V07 twice and V20", "[scheduler][validate]") {
  const auto found = check("0F0 1F1 . 0B0 . 0B1\n. 1F0 1B0 0F1 1B1 .", kTwo);
  CHECK(codes(found) == Rules{"V07", "V07", "V20"});
  CHECK_THAT(found[0].message, ContainsSubstring("row 0") && ContainsSubstring("row 1"));
}

TEST_CASE("a microbatch that does not exist breaks V05 and leaves its place empty",
          "[scheduler][validate]") {
  const auto found = check("0F0 0F1 . 0B0 . 0B1\n. 1F0 1B0 1F1 1B2 .", kTwo);
  CHECK(codes(found) == Rules{"V05", "V10", "V22"});
  CHECK(to_string(*only(found, "V22").task) == "0B1");
  CHECK(to_string(only(found, "V05")) ==
        "V05 row 1 column 4 (1B2): 1B2 names microbatch 2, but there are 2 (0 to 1); correct it or "
        "declare more microbatches");
  CHECK_THAT(only(found, "V10").message, EndsWith("microbatch 1; add a cell for it to row 1"));
  CHECK(codes("0F0 0F1 . 0B0 . 0B1\n. 1F0 1B0 1F1 1B2 .") == Rules{"V05", "V10", "V22"});
}

TEST_CASE("a missing backward breaks V10", "[scheduler][validate]") {
  CHECK(codes("0F0 0F1 . 0B0 . .\n. 1F0 1B0 1F1 1B1 .", kTwo) == Rules{"V10"});
}

TEST_CASE("half a split backward breaks V12", "[scheduler][validate]") {
  const auto found = check("0F0 0F1 . 0I0 . 0B1\n. 1F0 1B0 1F1 1B1 .", kTwo);
  CHECK(codes(found) == Rules{"V12"});
  CHECK(found[0].missing == "0W0");
}

TEST_CASE("an update before the last backward breaks V24 and V25", "[scheduler][validate]") {
  const auto found = check("0F0 0F1 . 0B0 0U 0B1\n. 1F0 1B0 1F1 1B1 .", kTwo);
  CHECK(codes(found) == Rules{"V24", "V25"});
  CHECK(only(found, "V24").missing == "0B1");
  CHECK(to_string(*only(found, "V25").task) == "0B1");
  CHECK(codes("@form list\n0F0 0F1 0B0 0U 0B1\n1F0 1B0 1F1 1B1", kTwo) == Rules{"V24", "V25"});
}

TEST_CASE("lists that wait for each other break V29 with a shortest cycle",
          "[scheduler][validate][deadlock]") {
  const auto found = check("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1", kTwo);
  REQUIRE(codes(found) == Rules{"V29"});
  CHECK(found[0].missing == "0B0 -> 0F1 -> 1F1 -> 1B0 -> 0B0");
  REQUIRE(found[0].cycle.size() == 4);
  CHECK(to_string(found[0].cycle[0]) == "0B0");
  CHECK(found[0].cells == std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 1}, {1, 2}});
  CHECK_THAT(found[0].message, ContainsSubstring("exchange"));
}

TEST_CASE("a cycle is told by its turns: of a row's run the first and the last",
          "[scheduler][validate][deadlock]") {
  const auto found = check(
      "@form list\n0F0 0F1 0F2 0B0 0F3 0F4 0F5 0F6 0B1 0B2 0B3 0B4 0B5 0B6\n"
      "1F0 1F1 1F2 1F3 1F4 1F5 1F6 1B0 1B1 1B2 1B3 1B4 1B5 1B6");
  REQUIRE(codes(found) == Rules{"V29"});
  CHECK(found[0].cycle.size() == 4);
  CHECK(to_string(found[0].cycle[0]) == "0B0");
  CHECK(to_string(found[0].cycle[3]) == "1B0");

  const auto other = check("@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n2F1 2B1 2F0 2B0");
  REQUIRE(codes(other) == Rules{"V29"});
  CHECK(other[0].missing == "1B0 -> 1F1 -> 2F1 -> 2B0 -> 1B0");
}

TEST_CASE("the proposed exchange repairs the deadlock", "[scheduler][validate][deadlock]") {
  const Schedule stuck = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const auto repair = check(stuck)[0].repair;
  REQUIRE(repair.has_value());
  auto rows = stuck.rows();
  auto& row = rows[static_cast<std::size_t>(repair->row)];
  std::swap(row[static_cast<std::size_t>(repair->first)],
            row[static_cast<std::size_t>(repair->second)]);
  CHECK(codes(check(Schedule(Schedule::Form::List, rows))).empty());
}

TEST_CASE("one exchange of any two cells of a row is found again",
          "[scheduler][validate][deadlock]") {
  const Schedule list = one_f_one_b(4, 6).to_list();
  int deadlocks = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t i = 0; i < 12; ++i) {
      for (std::size_t j = i + 1; j < 12; ++j) {
        auto rows = list.rows();
        std::swap(rows[r][i], rows[r][j]);
        const auto found = check(Schedule(Schedule::Form::List, rows));
        if (found.empty()) {
          continue;
        }
        ++deadlocks;
        CAPTURE(r, i, j);
        REQUIRE(codes(found) == Rules{"V29"});
        REQUIRE(found[0].repair.has_value());
        auto& row = rows[static_cast<std::size_t>(found[0].repair->row)];
        std::swap(row[static_cast<std::size_t>(found[0].repair->first)],
                  row[static_cast<std::size_t>(found[0].repair->second)]);
        REQUIRE(codes(check(Schedule(Schedule::Form::List, rows))).empty());
      }
    }
  }
  CHECK(deadlocks > 100);
}

TEST_CASE("a far exchange in a long schedule is found", "[scheduler][validate][deadlock]") {
  auto rows = one_f_one_b(8, 2000).to_list().rows();
  std::swap(rows[3][2000], rows[3][2009]);
  const auto found = check(Schedule(Schedule::Form::List, rows));
  REQUIRE(codes(found) == Rules{"V29"});
  CHECK(found[0].repair.has_value());
}

TEST_CASE("an exchange of two cells of an array is found again", "[scheduler][validate][repair]") {
  const Schedule array = one_f_one_b(3, 4);
  const auto width = static_cast<int>(array.columns());
  int broken = 0;
  for (int r = 0; r < 3; ++r) {
    for (int i = 0; i < width; ++i) {
      for (int j = i + 1; j < width; ++j) {
        const Schedule wrong = apply(array, {r, i, j});
        const auto found = check(wrong);
        if (found.empty()) {
          continue;
        }
        ++broken;
        CAPTURE(r, i, j);
        REQUIRE(found[0].repair.has_value());
        REQUIRE(std::ranges::count_if(
                    found, [](const Violation& v) { return v.repair.has_value(); }) == 1);
        REQUIRE_THAT(found[0].message, ContainsSubstring("; exchange "));
        REQUIRE(codes(check(apply(wrong, *found[0].repair))).empty());
      }
    }
  }
  CHECK(broken > 100);
}

TEST_CASE("an exchange in an array is proposed for each of its rules",
          "[scheduler][validate][repair]") {
  const auto repaired = [](const char* text, const char* rule) {
    const auto found = check(text);
    (void)only(found, rule);
    const auto v =
        std::ranges::find_if(found, [](const Violation& x) { return x.repair.has_value(); });
    REQUIRE(v != found.end());
    CHECK(codes(check(apply(Schedule::parse(text), *v->repair))).empty());
  };
  repaired("0F0 0F1 . 0B0 . 0B1\n1F0 . 1B0 1F1 1B1 .", "V20");
  repaired("0F0 0F1 . 0B0 . 0B1\n. 1B0 1F0 1F1 1B1 .", "V21");
  repaired("0F0 0F1 0B0 . . 0B1\n. 1F0 1B0 1F1 1B1 .", "V22");
  repaired("0F0 0W0 0I0", "V23");
  repaired("0F0 0F1 0B0 0U 0B1", "V24");
}

TEST_CASE("an exchange is proposed only where it repairs everything about order",
          "[scheduler][validate][repair]") {
  // The two faults are apart, so neither exchange repairs both.
  const auto two = check("0F0 0F1 0B0 . . 0B1\n1F0 . 1B0 1F1 1B1 .", kTwo);
  CHECK(codes(two) == Rules{"V20", "V22"});
  CHECK(std::ranges::none_of(two, [](const Violation& v) { return v.repair.has_value(); }));
  // The missing task stays missing, and the order is repaired all the same.
  const char* missing = "0F0 0F1 0B0 . . .\n. 1F0 1B0 1F1 1B1 .";
  const auto found = check(missing, kTwo);
  CHECK(codes(found) == Rules{"V10", "V22"});
  const auto repair = only(found, "V22").repair;
  REQUIRE(repair.has_value());
  CHECK(codes(check(apply(Schedule::parse(missing), *repair), kTwo)) == Rules{"V10"});
  // There is nothing to exchange with if all late tasks are missing.
  CHECK_FALSE(only(check(". 0F1 . . . 0B1\n1F0 . 1B0 1F1 1B1 .", kTwo), "V20").repair.has_value());
}

TEST_CASE("an exchange that would break the budget is not proposed",
          "[scheduler][validate][repair]") {
  const char* text = "0F0 0B1 0F1 0B0";
  const MemoryModel memory{.activations = {1}, .budget = 1};
  const auto free = only(check(text), "V21").repair;
  REQUIRE(free.has_value());
  CHECK(codes(check(apply(Schedule::parse(text), *free))).empty());
  // One after the other, F0 B0 F1 B1 holds only one activation.
  const auto tight = only(check(text, {.memory = memory}), "V21").repair;
  if (tight) {
    CHECK(codes(check(apply(Schedule::parse(text), *tight), {.memory = memory})).empty());
  }
}

TEST_CASE("where one exchange is not enough none is proposed", "[scheduler][validate][deadlock]") {
  const auto found = check("@form list\n0B0 0F0 0B1 0F1\n1B0 1F0 1B1 1F1", kTwo);
  REQUIRE(codes(found) == Rules{"V29"});
  CHECK(found[0].cycle.size() == 2);
  CHECK_FALSE(found[0].repair.has_value());
  CHECK_THAT(found[0].message, ContainsSubstring("no single exchange"));
}

TEST_CASE("a sink without backward starves both its producers", "[scheduler][validate]") {
  const auto found = check("@edges 0-2,1-2\nF0 . B0\nF0 . B0\n. F0 .");
  CHECK(codes(found) == Rules{"V10", "V22", "V22"});
  CHECK_THAT(only(found, "V10").message, ContainsSubstring("stage 2"));
}

TEST_CASE("V20 names every late producer", "[scheduler][validate]") {
  const auto found = check(
      "@edges 0-2,1-2\n"
      "F0 F1 . B0 F2 B1 F3 B2 . B3\n"
      "F0 F1 . B0 F2 B1 F3 B2 . B3\n"
      "F0 . B0 F1 B1 F2 B2 F3 B3 .");
  REQUIRE(codes(found) == Rules{"V20"});
  CHECK(found[0].missing == "0F0, 1F0");
}

// The remaining rules.

TEST_CASE("rows of unequal length break V01 in an array only", "[scheduler][validate]") {
  const auto found = check("0F0 . . 0B0\n. 1F0 1B0");
  CHECK(codes(found) == Rules{"V01"});
  CHECK(found[0].row == 1);
  CHECK_THAT(found[0].message, ContainsSubstring("3 cells, expected 4"));
  CHECK(codes("0F0 . . 0B0\n. 1F0 1B0", {.pad_rows = true}).empty());
  CHECK(codes("@form list\n0F0 0B0 0U\n1F0 1B0").empty());
  CHECK(codes(check(Schedule(Schedule::Form::Array, {}))) == Rules{"V01"});
  CHECK(codes(". .\n. .") == Rules{"V01"});
}

TEST_CASE("rows and devices that differ break V02", "[scheduler][validate]") {
  CHECK(codes("@rows 3\n0F0 . . 0B0\n. 1F0 1B0 .") == Rules{"V02"});
  CHECK(codes("0F0 0B0", {.devices = 2}) == Rules{"V02"});
}

TEST_CASE("what a parser would refuse is judged when it comes from C++", "[scheduler][validate]") {
  const Task nothing{static_cast<CellKind>(9), StageId(0), Microbatch(0)};
  CHECK(codes(check(Schedule{{F(0, 0), B(0, 0), Cell(nothing)}})) == Rules{"V06"});
  CHECK(codes(check(Schedule{{F(0, 0), B(0, 0), Cell(Task{})}})) == Rules{"V03"});
  CHECK(codes(check(Schedule{{overlap(F(0, 0)), B(0, 0)}})) == Rules{"V03"});
  CHECK(codes(check(Schedule{{F(0, 0), B(0, 0), F(-1, 0)}})) == Rules{"V04"});
  CHECK(codes(check(Schedule{{F(0, 0), B(0, 0), B(0, -2)}})) == Rules{"V05"});
}

TEST_CASE("a stage outside the graph breaks V04", "[scheduler][validate]") {
  const auto found = validate(Schedule::parse("0F0 0B0\n1F0 1B0"), StageGraph::chain(1));
  REQUIRE(codes(found) == Rules{"V04"});
  CHECK(to_string(*found[0].task) == "1F0");
  REQUIRE(found[0].more.size() == 1);
  CHECK(to_string(*found[0].more[0].task) == "1B0");
}

TEST_CASE("a stage without any row is missed", "[scheduler][validate]") {
  const auto found =
      validate(Schedule::parse("0F0 . . 0B0\n. 1F0 1B0 ."), StageGraph::from_edges(3, {{0, 1}}));
  CHECK(codes(found) == Rules{"V09", "V10"});
  CHECK(found[0].row == Violation::kNowhere);
}

TEST_CASE("whole and split backward of one microbatch break V11", "[scheduler][validate]") {
  CHECK(codes("0F0 0B0 0I0 0W0") == Rules{"V11"});
  CHECK(codes("0F0 0B0 0W0") == Rules{"V11", "V23"});
}

TEST_CASE("a weight gradient needs its own input gradient only", "[scheduler][validate]") {
  CHECK(codes("0F0 0W0 0I0") == Rules{"V23"});
  CHECK(codes("0F0 0I0 0W0").empty());
  CHECK(codes("0F0 . . 0I0 0W0\n. 1F0 1I0 . 1W0").empty());
}

TEST_CASE("two updates of one stage break V26", "[scheduler][validate]") {
  CHECK(codes("0F0 0B0 0U 0U") == Rules{"V26"});
}

TEST_CASE("V27 is asked for, not assumed", "[scheduler][validate]") {
  const char* text = "0F1 0F0 0B0 0B1";
  CHECK(codes(text).empty());
  const auto found = check(text, {.microbatch_order = true});
  CHECK(codes(found) == Rules{"V27"});
  CHECK(codes("0F0 0F1 0B1 0B0", {.microbatch_order = true}) == Rules{"V27"});
  // One backward is split, one whole: others wait for the input half; the weight half has no order.
  CHECK(codes("0F0 0F1 0I1 0B0 0W1", {.microbatch_order = true}) == Rules{"V27"});
  CHECK(codes("0F0 0F1 0I0 0I1 0W1 0W0", {.microbatch_order = true}).empty());
  const auto list = check("@form list\n0F1 0F0 0B1 0B0", {.microbatch_order = true});
  CHECK(codes(list) == Rules{"V27", "V27"});
  CHECK_THAT(list[0].message, ContainsSubstring("microbatches 0 and 1"));
}

TEST_CASE("members of a group must not wait for each other", "[scheduler][validate]") {
  const auto found = check("0F0 0F1|0B0 0B1");
  CHECK(codes(found).empty());
  const auto path = check(". 0F0|1F0 . 1B0 0B0");
  CHECK(codes(path) == Rules{"V20", "V28"});
  CHECK_THAT(only(path, "V28").message,
             StartsWith("the tasks of 0F0|1F0 must not") && ContainsSubstring("0F0 -> 1F0"));
  CHECK(codes("@form list\n0F0|2F0 2B0 0B0\n1F0 1B0") == Rules{"V28", "V29"});
  CHECK(codes("@form list\n0F0|0F0 0B0") == Rules{"V28"});
  CHECK(codes("@form list\n0F0 0B0|0U") == Rules{"V24", "V25", "V28"});
  CHECK(codes("@edges 0-2,1-2\n@form list\n0F0|1F0 0B0|1B0\n2F0 2B0").empty());
}

TEST_CASE("a stage graph with a cycle breaks V32", "[scheduler][validate]") {
  const auto found = check("@form list\n@edges 0-1,1-2,2-1\n0F0 0B0\n1F0 1B0\n2F0 2B0");
  CHECK(only(found, "V32").missing == "1 -> 2 -> 1");
}

TEST_CASE("a parameter of stages on two rows breaks V33 until it is reduced",
          "[scheduler][validate]") {
  const Schedule schedule = one_f_one_b(2, 2);
  StageGraph graph = StageGraph::chain(2);
  graph.set_name(StageId(0), "embedding");
  graph.add_tied({.name = "wte.weight", .stages = {StageId(0), StageId(1)}});
  const auto found = validate(schedule, graph);
  REQUIRE(codes(found) == Rules{"V33"});
  CHECK_THAT(found[0].message,
             ContainsSubstring("wte.weight") && ContainsSubstring("stage 0") &&
                 ContainsSubstring("stage 1") && ContainsSubstring("embedding"));
  CHECK(codes(validate(Schedule::parse("0F0 1F0 1B0 0B0"), graph)).empty());
  StageGraph reduced = StageGraph::chain(2);
  reduced.add_tied({.name = "wte.weight", .stages = {StageId(0), StageId(1)}, .reduced = true});
  CHECK(codes(validate(schedule, reduced)).empty());
}

TEST_CASE("V33 names every stage that the parameter reaches on another row",
          "[scheduler][validate]") {
  StageGraph graph = StageGraph::chain(4);
  graph.add_tied({.name = "head", .stages = {StageId(0), StageId(1), StageId(3)}});
  graph.add_tied({.name = "bias", .stages = {StageId(2), StageId(3)}});
  const Schedule schedule = Schedule::parse("0F0 1F0 . . . . 1B0 0B0\n. . 2F0 3F0 3B0 2B0 . .");
  for (const Schedule& form : {schedule, schedule.to_list()}) {
    const auto found = validate(form, graph);
    REQUIRE(codes(found) == Rules{"V33"});  // 0 and 1 share a row, and so do 2 and 3
    CHECK_THAT(found[0].message, ContainsSubstring("'head'") && ContainsSubstring("stage 3"));
    CHECK(found[0].row == 0);
  }
}

TEST_CASE("a frozen prefix needs no backward and gets no gradient", "[scheduler][validate]") {
  StageGraph graph = StageGraph::chain(2);
  graph.set_needs_weight_grad(StageId(0), false);
  CHECK(codes(validate(Schedule::parse("0F0 . .\n. 1F0 1B0"), graph)).empty());
  CHECK(codes(validate(Schedule::parse("0F0 . .\n. 1F0 1B0"), StageGraph::chain(2))) ==
        Rules{"V10"});
}

TEST_CASE("a backward of a stage that has none waits for its own forward alone",
          "[scheduler][validate][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({0});
  for (const char* text :
       {"0F0 0B0 .\n. 1F0 1B0", "0F0 0I0 0W0\n. 1F0 1B0", "0F0 . .\n. 1F0 1B0"}) {
    CAPTURE(text);
    CHECK(codes(validate(Schedule::parse(text), graph)).empty());
    CHECK(codes(validate(Schedule::parse(text).to_list(),
                         graph,
                         {.ordered_transfers = TransferStreams::OnePerRank}))
              .empty());
  }
  // It is a cell of its row like any other: after its forward, once, with both halves or none.
  CHECK(codes(validate(Schedule::parse("0B0 0F0 .\n. 1F0 1B0"), graph)).front() == "V20");
  CHECK(codes(validate(Schedule::parse("0F0 0B0 0B0\n. 1F0 1B0"), graph)) == Rules{"V08"});
  CHECK(codes(validate(Schedule::parse("0F0 0I0 .\n. 1F0 1B0"), graph)) == Rules{"V12"});
  CHECK(codes(validate(Schedule::parse("0F0 0W0 0I0\n. 1F0 1B0"), graph)) == Rules{"V23"});
}

TEST_CASE("where I does nothing W waits for the gradients", "[scheduler][validate][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  graph.set_needs_input_grad(StageId(0), false);
  CHECK(codes(validate(Schedule::parse("0F0 0I0 . 0W0\n. 1F0 1B0 ."), graph)).empty());
  const Schedule late = Schedule::parse("0F0 0I0 0W0 .\n. 1F0 1B0 .");
  const auto found = validate(late, graph);
  REQUIRE(codes(found) == Rules{"V22"});
  CHECK(to_string(*found[0].task) == "0W0");
  REQUIRE(found[0].repair.has_value());
  CHECK(validate(apply(late, *found[0].repair), graph).empty());
  CHECK(codes(validate(Schedule::parse("@form list\n0F0 0I0 0W0 0F1 0I1 0W1\n1F0 1F1 1B0 1B1"),
                       graph)) == Rules{"V29"});
  CHECK(codes(validate(Schedule::parse("0F0 0I0|0W0 .\n. 1F0 1B0"), graph)) ==
        Rules{"V22", "V23", "V28"});
}

TEST_CASE("a deadlock through a backward that does nothing is none",
          "[scheduler][validate][deadlock][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  const Schedule list = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  CHECK(codes(validate(list, graph)) == Rules{"V29"});
  graph.freeze({0});
  CHECK(codes(validate(list, graph)).empty());
}

TEST_CASE("a group of very many members is refused, not searched", "[scheduler][validate]") {
  std::vector<Task> members;
  for (int m = 0; m < 100'000; ++m) {
    members.push_back({CellKind::Forward, StageId(0), Microbatch(m)});
  }
  const auto found = check(Schedule{{Cell(members)}}, {.forward_only = true});
  REQUIRE(codes(found) == Rules{"V28"});
  CHECK_THAT(found[0].message, ContainsSubstring("100000 tasks"));
}

TEST_CASE("evaluation runs forwards alone", "[scheduler][validate]") {
  CHECK(codes("0F0 0F1 .\n. 1F0 1F1", {.forward_only = true}).empty());
  CHECK(codes("0F0 0F1 .\n. 1F0 1F1") == Rules{"V10"});
  // and keeps no activations
  const MemoryModel memory{.activations = {10, 10}, .transient = {1, 1}, .budget = 5};
  CHECK(codes("0F0 0F1 .\n. 1F0 1F1", {.forward_only = true, .memory = memory}).empty());
}

TEST_CASE("each replica has its own share of the microbatches", "[scheduler][validate]") {
  const std::string headers = "@edges 0-1,2-3\n@replicas 0=2,1=3\n";
  CHECK(codes((headers + "0F0 3F0 3B0 0B0\n2F0 1F0 1B0 2B0").c_str()).empty());
  CHECK(codes((headers + "3F0 0F0 3B0 0B0\n2F0 1F0 1B0 2B0").c_str()) == Rules{"V20", "V20"});
  CHECK(codes((headers + "@microbatches 4\n0F0 3F0 3B0 0B0\n2F0 1F0 1B0 2B0").c_str()) ==
        Rules{"V09", "V10"});
}

TEST_CASE("V30 names the row, the task and the bytes over its budget",
          "[scheduler][validate][memory]") {
  const Schedule schedule = one_f_one_b(4, 8);  // holds 4, 3, 2, 1 activations
  MemoryModel memory{.fixed = {100, 100, 100, 100}, .activations = {10, 10, 10, 10}, .budget = 140};
  const StageGraph chain = StageGraph::chain(4);
  CHECK(codes(validate(schedule, chain, {.memory = memory})).empty());
  memory.budget = 125;
  const auto found = validate(schedule, chain, {.memory = memory});
  REQUIRE(codes(found) == Rules{"V30", "V30"});
  CHECK(found[0].row == 0);
  CHECK(to_string(*found[0].task) == "0F3");
  CHECK(found[0].missing == "15 bytes");
  memory.transient = {0, 0, 0, 30};
  CHECK(codes(validate(schedule, chain, {.memory = memory})) == Rules{"V30", "V30", "V30"});
  memory.transient = {};
  memory.budgets = {140, 125, 125, 125};
  const auto uneven = validate(schedule, chain, {.memory = memory});
  REQUIRE(codes(uneven) == Rules{"V30"});
  CHECK(uneven[0].row == 1);
  CHECK(uneven[0].missing == "5 bytes");
}

/// Returns the smallest budget without a violation: the bytes that the fullest row holds by V30.
double least_budget(const Schedule& schedule,
                    const StageGraph& graph,
                    MemoryModel memory,
                    Sharing sharing) {
  double enough = 1 << 30, little = 0;
  while (enough - little > 1) {
    memory.budget = std::floor((enough + little) / 2);
    const bool fits = validate(schedule, graph, {.memory = memory, .sharing = sharing}).empty();
    (fits ? enough : little) = memory.budget;
  }
  return enough;
}

TEST_CASE("V30 counts what a rank keeps and borrows of what copies share",
          "[scheduler][validate][memory][strategies]") {
  // A stage of 1200 bytes that train, and 100 that do not; states are twice as large.
  const MemoryModel memory{
      .fixed = {4900}, .trained = {1200}, .states = {2400}, .activations = {10}};
  const StageGraph chain = StageGraph::chain(1);
  const Schedule copies = in_copies(Schedule::parse("0F0 0B0"), 4);
  const auto bytes = [&](Sharing sharing) { return least_budget(copies, chain, memory, sharing); };
  CHECK(bytes(Sharing::Nothing) == 4900 + 10);
  CHECK(bytes(Sharing::States) == 4900 - 1800 + 300);  // its part of the sum, after the tasks
  CHECK(bytes(Sharing::Gradients) == 4900 - 1800 - 900 + 1200 + 10);
  CHECK(bytes(Sharing::Weights) == 4900 - 1800 - 1800 + 2400 + 10);
  CHECK(least_budget(Schedule::parse("0F0 0B0"), chain, memory, Sharing::States) == 4900 + 10);
}

TEST_CASE("V30 knows copies in the schedule, tied or not",
          "[scheduler][validate][memory][strategies]") {
  const Schedule both =
      Schedule::parse("@edges 0-1,2-3\n@replicas 0=2,1=3\n0F0 3F0 3B0 0B0\n2F0 1F0 1B0 2B0");
  StageGraph graph = both.stage_graph();
  const MemoryModel memory{.fixed = {400, 400, 400, 400},
                           .trained = {100, 100, 100, 100},
                           .states = {200, 200, 200, 200}};
  const double whole = least_budget(both, graph, memory, Sharing::Nothing);
  CHECK(whole == 800);
  if (GENERATE(false, true)) {
    for (const int first : {0, 2}) {
      graph.add_tied(
          {.name = "tied", .stages = {StageId(first), StageId(first + 1)}, .reduced = true});
    }
  }
  // Half of the states of both stages of the row, and its parts of two sums beside its tasks.
  CHECK(least_budget(both, graph, memory, Sharing::States) == whole - 200 + 100);
}

TEST_CASE("V30 holds for lists, groups and stages without a backward",
          "[scheduler][validate][memory]") {
  const Schedule list = one_f_one_b(4, 8).to_list();
  const MemoryModel memory{.activations = {10, 10, 10, 10}, .budget = 25};
  const auto found = validate(list, StageGraph::chain(4), {.memory = memory});
  REQUIRE(codes(found) == Rules{"V30", "V30"});
  CHECK_THAT(found[0].message, ContainsSubstring("position"));
  // A group holds its forward before its backward frees.
  const Schedule group = Schedule::parse("0F0 0F1|0B0 0B1");
  CHECK(codes(validate(group,
                       StageGraph::chain(1),
                       {.memory = MemoryModel{.activations = {10}, .budget = 15}})) ==
        Rules{"V30"});
  CHECK(codes(validate(group,
                       StageGraph::chain(1),
                       {.memory = MemoryModel{.activations = {10}, .budget = 20}}))
            .empty());
  StageGraph frozen = StageGraph::chain(1);
  frozen.set_needs_weight_grad(StageId(0), false);
  CHECK(codes(validate(Schedule::parse("0F0 0F1"),
                       frozen,
                       {.memory = MemoryModel{.activations = {10}, .budget = 5}}))
            .empty());
}

TEST_CASE("an input half that frees its share lowers the peak", "[scheduler][validate][memory]") {
  const Schedule schedule = Schedule::parse("0F0 0I0 0F1 0I1 0W0 0W1");
  MemoryModel memory{.activations = {10}, .budget = 15};
  CHECK(codes(validate(schedule, StageGraph::chain(1), {.memory = memory})) == Rules{"V30"});
  memory.input_release = 0.5;
  CHECK(codes(validate(schedule, StageGraph::chain(1), {.memory = memory})).empty());
}

TEST_CASE("a replay is held while B runs, or from I to W", "[scheduler][validate][memory]") {
  const MemoryModel memory{
      .activations = {1}, .transient = {10}, .replayed = {10}, .input_release = 0};
  const auto needs = [&](const char* list, double bytes) {
    const auto codes_of = [&](double budget) {
      MemoryModel limited = memory;
      limited.budget = budget;
      return codes(validate(Schedule::parse(list), StageGraph::chain(1), {.memory = limited}));
    };
    CHECK(codes_of(bytes).empty());
    CHECK(codes_of(bytes - 1) == Rules{"V30"});
  };
  needs("0F0 0F1 0F2 0B0 0B1 0B2", 3 + 10);
  needs("0F0 0F1 0F2 0I0 0W0 0I1 0W1 0I2 0W2", 3 + 10 + 10);  // W0 has a transient too
  needs("0F0 0F1 0F2 0I0 0I1 0I2 0W0 0W1 0W2", 3 + 30 + 10);
}

TEST_CASE("V31: values needed in another order than made cross on an ordered channel",
          "[scheduler][validate][transfers]") {
  const Schedule crossing = Schedule::parse("0F0 0F1 . . 0B1 0B0\n. . 1F1 1B1 1F0 1B0");
  CHECK(codes(check(Schedule(Schedule::Form::List, crossing.rows()))).empty());
  const auto found = check(Schedule(Schedule::Form::List, crossing.rows()),
                           {.ordered_transfers = TransferStreams::PerPeerAndDirection});
  CHECK_THAT(only(found, "V31").message, ContainsSubstring("0F0") && ContainsSubstring("0F1"));
  CHECK(std::ranges::count(found, "V31", &Violation::rule) == 1);
  CHECK(std::ranges::count(found, "V35", &Violation::rule) == 1);
  const auto repair = only(found, "V31").repair;
  REQUIRE(repair.has_value());
  CHECK(codes(check(apply(Schedule(Schedule::Form::List, crossing.rows()), *repair),
                    {.ordered_transfers = TransferStreams::PerPeerAndDirection}))
            .empty());
}

TEST_CASE("a late cell of a long array is repaired", "[scheduler][validate][repair]") {
  const Schedule array = one_f_one_b(8, 20'000);
  const Schedule wrong = apply(array, {3, 20'000, 20'017});
  const auto found = check(wrong);
  REQUIRE_FALSE(found.empty());
  REQUIRE(found[0].repair.has_value());
  CHECK(check(apply(wrong, *found[0].repair)).empty());
}

TEST_CASE("V35: 1F1B with one stream for everything blocks, with one per direction it does not",
          "[scheduler][validate][transfers]") {
  const Schedule schedule = one_f_one_b(4, 8);
  CHECK(
      codes(check(schedule, {.ordered_transfers = TransferStreams::PerPeerAndDirection})).empty());
  const auto found = check(schedule, {.ordered_transfers = TransferStreams::OnePerRank});
  REQUIRE(codes(found) == Rules{"V35"});
  CHECK_FALSE(found[0].cycle.empty());
  CHECK_THAT(found[0].message, ContainsSubstring("transfer of"));
  CHECK(codes(check(gpipe(4, 8), {.ordered_transfers = TransferStreams::OnePerRank})).empty());
}

TEST_CASE("VA-1: everything wrong is reported at once", "[scheduler][validate]") {
  const auto found = check("@rows 3\n@microbatches 2\n0F0 0F0 0F7 0I0\n1F1 1F0 1B0");
  const Rules rules = codes(found);
  for (const char* rule : {"V01", "V02", "V05", "V08", "V09", "V10", "V12", "V20"}) {
    CAPTURE(rule);
    CHECK(std::ranges::find(rules, rule) != rules.end());
  }
}

TEST_CASE("a number out of all proportion costs no memory", "[scheduler][validate]") {
  const auto found = check("@stages 60000\n@microbatches 16000000\n0F0 0B0");
  CHECK(codes(found) == Rules{"V09", "V09", "V10", "V10", "V22"});
  CHECK_THAT(found[0].message,
             ContainsSubstring("stages 1 to 59999 lack the forward of microbatches 0 to 15999999"));
  CHECK_THAT(found[1].message,
             ContainsSubstring("stage 0 lacks the forward of microbatches 1 to 15999999"));
}

TEST_CASE("updates cost what they wait for, not what a microbatch is numbered",
          "[scheduler][validate]") {
  std::string text = "0F16000000 0F0|0U";
  for (int i = 0; i < 20'000; ++i) {
    text += i % 2 == 0 ? " 0B0|0U" : " 0U";
  }
  const auto found = check(("@form list\n" + text).c_str());
  CHECK(only(found, "V26").more.size() == 20'000 - 1);
}

TEST_CASE("a deadlock of long rows is found and explained", "[scheduler][validate][deadlock]") {
  // All backwards come before all forwards.
  constexpr int kMany = 20'000;
  Schedule::Row row;
  for (int m = 0; m < kMany; ++m) {
    row.push_back(B(0, m));
  }
  for (int m = 0; m < kMany; ++m) {
    row.push_back(F(0, m));
  }
  const auto found = check(Schedule(Schedule::Form::List, {row}));
  REQUIRE(codes(found) == Rules{"V29"});
  CHECK(found[0].missing == "0B0 -> 0F0 -> 0B0");
  CHECK(found[0].message.size() < 2000);
}

}  // namespace
}  // namespace stagecraft
