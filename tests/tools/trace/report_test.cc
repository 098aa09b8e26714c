/// Checks that the report on planned against measured gives every figure once, in milliseconds for
/// people and in seconds for programs.
#include "stagecraft/tools/trace/report.h"

#include <sstream>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using tools::cells_text;
using tools::comparison_json;
using tools::comparison_summary;
using tools::comparison_text;

/// Holds one microbatch over two rows; the second row's backward begins a tenth of a second late.
/// `first`: the number of the first row; the rows before it have no task.
struct Run {
  Schedule schedule;
  Layout layout = Layout::of(schedule);
  Measurements measured;
  Comparison comparison;

  explicit Run(std::size_t first = 0) : schedule(rows_from(first)) {
    const auto task = [](CellKind kind, int stage, double start, double end) {
      return MeasuredTask{{kind, StageId(stage), Microbatch(0)}, {start, end}, {}};
    };
    MeasuredStep step;
    step.rows.resize(first + 2);
    step.rows[first].tasks = {task(CellKind::Forward, 0, 1, 2),
                              task(CellKind::Backward, 0, 5.1, 6.1)};
    step.rows[first + 1].tasks = {task(CellKind::Forward, 1, 2, 3),
                                  task(CellKind::Backward, 1, 3.1, 5.1)};
    step.rows[first].votes = step.rows[first + 1].votes = {{6.1, 6.35}};
    step.time = {0.5, 6.35};
    measured.add(step);
    comparison = compare(schedule, schedule.stage_graph(), measured.costs(), measured);
  }

  static Schedule rows_from(std::size_t first) {
    std::vector<Schedule::Row> rows(first, Schedule::Row(4));
    rows.push_back({cells::F(0, 0), cells::idle, cells::idle, cells::B(0, 0)});
    rows.push_back({cells::idle, cells::F(1, 0), cells::B(1, 0), cells::idle});
    return {Schedule::Form::Array, std::move(rows)};
  }
};

}  // namespace

TEST_CASE("the report tells makespan, bills and what surrounds them", "[tools][trace]") {
  const Run run;
  const std::string text =
      comparison_text(run.comparison, run.measured, run.layout, {.ranks = {"0", "1"}});
  CHECK_THAT(text, ContainsSubstring("mean of 1 step, milliseconds"));
  CHECK_THAT(text, ContainsSubstring("makespan: planned 5000.00, measured 5100.00 (+2.0 %)"));
  CHECK_THAT(
      text,
      ContainsSubstring("a step takes 5850.00: start 500.00, makespan 5100.00, vote 250.00,\n"
                        "update 0.00, other 0.00\n"));
  CHECK_THAT(text, ContainsSubstring("planned with the mean times of this run's own tasks"));
  // The rows are busy for two and three seconds, of five each.
  CHECK_THAT(text, ContainsSubstring("bubble: planned 50.0 %, measured 51.0 % of the ranks' time"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
  const nlohmann::json json =
      comparison_json(run.comparison, run.measured, run.layout, {.ranks = {"0", "1"}}, 0);
  CHECK(json.at("planned_by") == "this run");
  CHECK_FALSE(json.contains("costs"));
  CHECK(json.at("planned_bubble_fraction").get<double>() == Catch::Approx(0.5));
  CHECK_FALSE(json.contains("cells"));
  CHECK(json.at("ranks")[0].at("planned").at("dependency_seconds").get<double>() ==
        Catch::Approx(3));
  CHECK(json.at("ranks")[1].at("measured").at("overhead_seconds").get<double>() ==
        Catch::Approx(0.1));
}

TEST_CASE("the summary has the figures of the report in a few lines", "[tools][trace]") {
  const Run run;
  tools::TraceHeader header{.ranks = {"0", "1"}, .processors = 2};
  const auto text = [&] {
    return comparison_summary(run.comparison, run.measured, run.layout, header);
  };
  // The measured tasks do not say when their inputs arrived, so waits for them are overhead.
  CHECK(text() ==
        "makespan: 5100.00 ms, planned 5000.00 with this run's own times (+2.0 %)\n"
        "bubble in it: 51.0 %, planned 50.0 %: overhead 31.4 %, warm-up 9.8 %\n"
        "a step: 5850.00 ms with start 500.00, vote 250.00, update 0.00, other 0.00\n");
  header.processors = 1;
  CHECK_THAT(text(),
             ContainsSubstring("2 ranks with 1 thread each share 1 processor, and wait for them"));
  header.planned_with = tools::PlannedWith{"'/home/of_somebody/of_the_run_before.json'", {}};
  CHECK_THAT(text(), ContainsSubstring("with ...of_the_run_before.json' (+2.0 %)\n"));
  std::istringstream lines(text());
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 80);
  }
}

TEST_CASE("a plan that takes no time has no deviation", "[tools][trace]") {
  Run run;
  run.comparison.planned_makespan = 0;
  const tools::TraceHeader header{.ranks = {"0", "1"}, .processors = 2};
  CHECK_THAT(comparison_text(run.comparison, run.measured, run.layout, header),
             ContainsSubstring("makespan: planned 0.00, measured 5100.00\n"));
  CHECK_THAT(comparison_summary(run.comparison, run.measured, run.layout, header),
             ContainsSubstring("planned 0.00 with this run's own times\n"));
}

TEST_CASE("the report names the file that it was planned with", "[tools][trace]") {
  const Run run;
  tools::TraceHeader header{.ranks = {"0", "1"},
                            .planned_with = tools::PlannedWith{"'c.json'", {}}};
  CHECK_THAT(comparison_text(run.comparison, run.measured, run.layout, header),
             ContainsSubstring("planned with 'c.json'\n"));
  const nlohmann::json json = comparison_json(run.comparison, run.measured, run.layout, header, 0);
  CHECK(json.at("planned_by") == "costs");
  CHECK(json.at("costs") == "'c.json'");
  header.planned_with->file = "'/home/" + std::string(100, 'x') + "/of_the_run_before.json'";
  const std::string text = comparison_text(run.comparison, run.measured, run.layout, header);
  CHECK_THAT(text, ContainsSubstring("planned with ...xxx"));
  CHECK_THAT(text, ContainsSubstring("xx/of_the_run_before.json'\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 80);
  }
}

TEST_CASE("the report says that ranks share processors, where they do", "[tools][trace]") {
  const Run run;
  const auto text = [&](int threads, int processors) {
    return comparison_text(
        run.comparison,
        run.measured,
        run.layout,
        {.ranks = {"0", "1"}, .threads_per_worker = threads, .processors = processors});
  };
  CHECK_THAT(text(1, 2), !ContainsSubstring("share"));
  CHECK_THAT(text(1, 1), ContainsSubstring("2 ranks with 1 thread each share 1 processor:"));
  CHECK_THAT(text(4, 6), ContainsSubstring("2 ranks with 4 threads each share 6 processors:"));
}

TEST_CASE("cells are listed by how far they are from their plan", "[tools][trace]") {
  const Run run;
  const std::string two = cells_text(run.comparison, run.layout, 2);
  CHECK_THAT(two, ContainsSubstring("0B0") && ContainsSubstring("1B0"));
  CHECK_THAT(two, ContainsSubstring("+100.00"));
  CHECK_THAT(two, !ContainsSubstring("0F0"));
  CHECK_THAT(two, ContainsSubstring("2 more cells deviate less"));
  CHECK_THAT(cells_text(run.comparison, run.layout, 4), !ContainsSubstring("more cells"));
}

TEST_CASE("the report is by rank: rows without a task change nothing in it", "[tools][trace]") {
  const Run run;
  const Run moved(3);
  const tools::TraceHeader header{.ranks = {"0", "1"}};
  CHECK(comparison_text(moved.comparison, moved.measured, moved.layout, header) ==
        comparison_text(run.comparison, run.measured, run.layout, header));
  CHECK(comparison_json(moved.comparison, moved.measured, moved.layout, header, 4) ==
        comparison_json(run.comparison, run.measured, run.layout, header, 4));
  CHECK(cells_text(moved.comparison, moved.layout, 4) == cells_text(run.comparison, run.layout, 4));
}

}  // namespace stagecraft::tests
