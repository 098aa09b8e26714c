/// Checks that each fault gets one line: one mistake that breaks many cells is one violation with
/// all of them.
#include <algorithm>
#include <set>
#include <string>

#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/formats/json/json.h"
#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/render/html/html.h"
#include "stagecraft/scheduler/render/svg.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/scheduler/occurrences.h"
#include "stagecraft/tests/scheduler/render/html/html_page.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Rules = std::vector<std::string>;

Rules rules(const std::vector<Violation>& violations) {
  Rules list;
  for (const Violation& v : violations) {
    list.push_back(v.rule);
  }
  return list;
}

std::vector<Violation> violations_of(const Schedule& schedule,
                                     const ValidateOptions& options = {}) {
  return validate(schedule, schedule.stage_graph(), options);
}

/// Returns the schedule with one row changed.
template <class Change>
Schedule with_row(const Schedule& schedule, std::size_t row, Change&& change) {
  auto rows = schedule.rows();
  change(rows[row]);
  return Schedule(schedule.form(), std::move(rows), schedule.headers());
}

TEST_CASE("too many microbatches are one violation of V05", "[scheduler][validate][alike]") {
  const Schedule schedule = one_f_one_b(4, 8);
  const auto found = violations_of(schedule, {.microbatches = 4});
  REQUIRE(rules(found) == Rules{"V05"});
  const Violation& v = found[0];
  CHECK(to_string(*v.task) == "0F4");
  CHECK_THAT(v.message,
             ContainsSubstring("0F4 names microbatch 4, but there are 4 (0 to 3)") &&
                 EndsWith("; likewise 31 more, of stages 0 to 3 and microbatches 4 to 7"));
  CHECK(v.more.size() == 31);
  CHECK(std::set<std::pair<int, int>>(v.cells.begin(), v.cells.end()).size() == 32);

  // Every drawing marks all of them.
  CHECK(occurrences(render(schedule, found, {.width = 1000}), "[") == 32);
  CHECK(occurrences(render_svg(schedule, schedule.stage_graph(), nullptr, found),
                    "class=\"bad\"") == 32);
  const auto data = data_of(render_html(schedule, schedule.stage_graph(), nullptr, found));
  REQUIRE(data["violations"].size() == 1);
  CHECK(data["violations"][0]["cells"].size() == 32);
  CHECK(data["violations"][0]["unmarked"] == 0);
}

TEST_CASE("too few microbatches are one violation of V09 and one of V10",
          "[scheduler][validate][alike]") {
  const auto found = violations_of(gpipe(4, 4), {.microbatches = 8});
  REQUIRE(rules(found) == Rules{"V09", "V10"});
  CHECK(found[0].message ==
        "stages 0 to 3 lack the forward of microbatches 4 to 7; add a cell for each to the row of "
        "each stage");
  CHECK(found[0].stages == std::vector<NumberRange>{{0, 3}});
  CHECK(found[0].microbatches == std::vector<NumberRange>{{4, 7}});
  CHECK(found[0].row == Violation::kNowhere);
}

TEST_CASE("stages that lack different microbatches, or a row, are told apart",
          "[scheduler][validate][alike]") {
  const auto found =
      violations_of(Schedule::parse("@stages 5\n"
                                    "@microbatches 3\n"
                                    "0F0 0F1 .   0B0 0B1 .   .\n"
                                    ".   1F0 1F1 1F2 1B0 1B1 1B2\n"));
  std::vector<std::string> lines;
  for (const Violation& v : found) {
    if (v.rule == "V09") {
      lines.push_back(v.message);
    }
  }
  CHECK(lines == std::vector<std::string>{
                     "stages 2 to 4 lack the forward of microbatches 0 to 2; "
                     "add a cell for each to new rows, one for each stage",
                     "stage 0 lacks the forward of microbatch 2; add a cell for it to row 0"});
}

TEST_CASE("stages beyond the graph are one violation of V04", "[scheduler][validate][alike]") {
  const auto found = validate(one_f_one_b(4, 2), StageGraph::chain(2));
  REQUIRE(rules(found) == Rules{"V04"});
  CHECK(found[0].more.size() == 7);
  CHECK_THAT(found[0].message, EndsWith("likewise 7 more, of stages 2, 3 and microbatches 0, 1"));
}

TEST_CASE("tasks of a stage on the wrong row are one violation of V07",
          "[scheduler][validate][alike]") {
  const Schedule schedule = Schedule::parse(
      "@form list\n"
      "0F0 0F1 0F2 0B0 0B1 0B2\n"
      "1F0 1B0 1F1 1B1 1F2 1B2 2F2 2B2 2F1\n"
      "2F0 2B0 2B1\n");
  const auto found = violations_of(schedule);
  const auto elsewhere = std::ranges::find(found, "V07", &Violation::rule);
  REQUIRE(elsewhere != found.end());
  CHECK(std::ranges::count(found, "V07", &Violation::rule) == 1);
  CHECK(elsewhere->more.size() == 2);
}

TEST_CASE("a row that is there twice over breaks V08 once per stage",
          "[scheduler][validate][alike]") {
  const Schedule twice = with_row(gpipe(2, 8).to_list(), 1, [](Schedule::Row& row) {
    const Schedule::Row copy = row;
    row.insert(row.end(), copy.begin(), copy.end());
  });
  const auto found = violations_of(twice);
  REQUIRE(rules(found) == Rules{"V08"});
  CHECK(found[0].more.size() == 15);
  CHECK(found[0].cells.size() == 32);
}

TEST_CASE("a stage without its row is told once per rule and stage that waits for it",
          "[scheduler][validate][alike]") {
  const Schedule lacking =
      with_row(gpipe(4, 8), 2, [](Schedule::Row& row) { std::ranges::fill(row, Cell()); });
  const auto found = violations_of(lacking);
  CHECK(rules(found) == Rules{"V09", "V10", "V20", "V22"});
  CHECK_THAT(found[2].message,
             ContainsSubstring("2F0 is missing; add 2F0 before column") &&
                 EndsWith("likewise 7 more, of stage 3 and microbatches 1 to 7"));
  CHECK(found[2].more[6].missing == "2F7");
  CHECK(found[2].cells.size() == 8);
  CHECK_FALSE(found[2].repair.has_value());  // there is nothing to exchange with
}

TEST_CASE("one missing task is one line for each rule it breaks", "[scheduler][validate][alike]") {
  const Schedule lacking = with_row(gpipe(4, 8), 1, [](Schedule::Row& row) { row[1] = Cell(); });
  const auto found = violations_of(lacking);
  CHECK(rules(found) == Rules{"V09", "V20", "V21"});
  for (const Violation& v : found) {
    CHECK(v.more.empty());
    CHECK(v.message.find("likewise") == std::string::npos);
  }
}

TEST_CASE("a cell left out of a row is one line per pair of stages that no longer fit",
          "[scheduler][validate][alike]") {
  const Schedule shifted =
      with_row(one_f_one_b(4, 8), 3, [](Schedule::Row& row) { row.erase(row.begin()); });
  const auto found = violations_of(shifted);
  CHECK(rules(found) == Rules{"V01", "V20"});
  CHECK(found[1].more.size() == 6);
}

TEST_CASE("late and missing are two causes", "[scheduler][validate][alike]") {
  const auto found =
      violations_of(Schedule::parse("@microbatches 2\n0F0 .   .   0B0 . .\n1F0 1F1 1B0 1B1 . ."));
  CHECK(rules(found) == Rules{"V09", "V10", "V20", "V20"});
}

TEST_CASE("halves without the other are one line per half", "[scheduler][validate][alike]") {
  std::vector<Schedule::Row> rows = zb_h1(4, 8).rows();
  for (Schedule::Row& row : rows) {
    for (Cell& cell : row) {
      if (!cell.idle() && cell.tasks().front().kind == CellKind::BackwardWeight) {
        cell = Cell();
      }
    }
  }
  const auto found = violations_of(Schedule(Schedule::Form::Array, rows));
  REQUIRE(rules(found) == Rules{"V12"});
  CHECK(found[0].more.size() == 31);
}

TEST_CASE("rows short of the longest are one line for each length",
          "[scheduler][validate][alike]") {
  const auto found =
      violations_of(Schedule::parse("0F0 .   .   .   0B0 .\n"
                                    ".   1F0 .   1B0 .\n"
                                    ".   .   2F0 2B0 .\n"));
  REQUIRE(rules(found).front() == "V01");
  CHECK(std::ranges::count(found, "V01", &Violation::rule) == 1);
  CHECK(found[0].message ==
        "rows 1, 2 have 5 cells, expected 6 as in the longest row; end them with '.' or declare a "
        "list");
  CHECK(found[0].row == 1);
  REQUIRE(found[0].more.size() == 1);
  CHECK(found[0].more[0].row == 2);
}

TEST_CASE("few alike are named, many are counted", "[scheduler][validate][alike]") {
  CHECK_THAT(violations_of(one_f_one_b(1, 4), {.microbatches = 2})[0].message,
             EndsWith("; likewise 0B2, 0F3, 0B3"));
  CHECK_THAT(violations_of(one_f_one_b(1, 8), {.microbatches = 2})[0].message,
             EndsWith("; likewise 11 more, of stage 0 and microbatches 2 to 7"));
}

TEST_CASE("cells that JSON malforms in one way are one violation", "[scheduler][validate][alike]") {
  const Schedule schedule =
      parse_json(R"({"rows": [[[0, 0, "F"], 1, 2, [0, 0, "X"], [0, 1, "X"], [[0, 0, "B"]]]]})");
  CHECK(rules(violations_of(schedule)) == Rules{"V03", "V03", "V06"});
}

TEST_CASE("transfers that a file lacks are one line per stage and direction",
          "[scheduler][validate][alike]") {
  const ReadSchedule read = parse_pytorch_csv(
      "0F0,0F1,0F2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2\n");
  const auto found =
      validate(read.schedule, read.schedule.stage_graph(), {.communication = read.communication});
  REQUIRE(rules(found) == Rules{"V31"});
  CHECK_THAT(found[0].message, ContainsSubstring("0SEND_F0") && EndsWith("; likewise 0F1, 0F2"));
  CHECK(found[0].more[1].missing == "0SEND_F2");
}

TEST_CASE("actions that are alike are named, and counted where they are many",
          "[scheduler][validate][alike]") {
  const auto found = [](int actions) {
    std::vector<CommAction> list;
    for (int i = 0; i < actions; ++i) {
      list.push_back({CommKind::SendForward, StageId(5), Microbatch(i), 0, 1});
    }
    const Schedule schedule = gpipe(1, 1);
    return validate(schedule, schedule.stage_graph(), {.communication = list}).front().message;
  };
  CHECK_THAT(found(3), EndsWith("; likewise 5SEND_F1, 5SEND_F2"));
  CHECK_THAT(found(9), EndsWith("; likewise 8 more: 5SEND_F1, 5SEND_F2, 5SEND_F3, 5SEND_F4, ..."));
}

TEST_CASE("a page marks so many cells, and says how many it does not",
          "[scheduler][render][alike]") {
  const Schedule schedule = gpipe(4, 8'000);
  const auto found = violations_of(schedule, {.microbatches = 1});
  const auto data = data_of(render_html(schedule, schedule.stage_graph(), nullptr, found));
  REQUIRE(data["violations"].size() == 1);
  CHECK(data["violations"][0]["cells"].size() == kMaxHtmlMarks);
  CHECK(data["violations"][0]["unmarked"] == 4 * 2 * 7'999 - kMaxHtmlMarks);
}

}  // namespace
}  // namespace stagecraft
