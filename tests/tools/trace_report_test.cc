/// The report on planned against measured says every figure once, in milliseconds for people and in
/// seconds for programs.

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/trace/report.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using tools::cells_text;
using tools::comparison_json;
using tools::comparison_text;

/// One microbatch over two rows; the second row's backward begins a tenth of a second late.
struct Run {
  Schedule schedule{{cells::F(0, 0), cells::idle, cells::idle, cells::B(0, 0)},
                    {cells::idle, cells::F(1, 0), cells::B(1, 0), cells::idle}};
  Measurements measured;
  Comparison comparison;

  Run() {
    const auto task = [](CellKind kind, int stage, double start, double end) {
      return MeasuredTask{{kind, StageId(stage), Microbatch(0)}, {start, end}, {}};
    };
    MeasuredStep step;
    step.rows.resize(2);
    step.rows[0].tasks = {task(CellKind::Forward, 0, 1, 2), task(CellKind::Backward, 0, 5.1, 6.1)};
    step.rows[1].tasks = {task(CellKind::Forward, 1, 2, 3), task(CellKind::Backward, 1, 3.1, 5.1)};
    step.rows[0].votes = step.rows[1].votes = {{6.1, 6.35}};
    step.time = {0.5, 6.35};
    measured.add(step);
    comparison = compare(schedule, schedule.stage_graph(), measured.costs(), measured);
  }
};

}  // namespace

TEST_CASE("the report tells makespan, bills and what surrounds them", "[tools][trace]") {
  const Run run;
  const std::string text = comparison_text(run.comparison, run.measured, {.ranks = {"0", "1"}});
  CHECK_THAT(text, ContainsSubstring("mean of 1 step, milliseconds"));
  CHECK_THAT(text, ContainsSubstring("makespan: planned 5000.00, measured 5100.00 (+2.0 %)"));
  CHECK_THAT(text,
             ContainsSubstring("a step takes 5850.00: start 500.00, makespan 5100.00, vote 250.00, "
                               "update 0.00, other 0.00"));
  const nlohmann::json json = nlohmann::json::parse(
      comparison_json(run.comparison, run.measured, {.ranks = {"0", "1"}}, 0));
  CHECK_FALSE(json.contains("cells"));
  CHECK(json.at("ranks")[0].at("planned").at("dependency").get<double>() == Catch::Approx(3));
  CHECK(json.at("ranks")[1].at("measured").at("overhead").get<double>() == Catch::Approx(0.1));
}

TEST_CASE("the report says that ranks share processors, where they do", "[tools][trace]") {
  const Run run;
  const auto text = [&](int threads, int processors) {
    return comparison_text(
        run.comparison,
        run.measured,
        {.ranks = {"0", "1"}, .threads_per_worker = threads, .processors = processors});
  };
  CHECK_THAT(text(1, 2), !ContainsSubstring("share"));
  CHECK_THAT(text(1, 1), ContainsSubstring("2 ranks with 1 thread each share 1 processor:"));
  CHECK_THAT(text(4, 6), ContainsSubstring("2 ranks with 4 threads each share 6 processors:"));
}

TEST_CASE("cells are listed by how far they are from their plan", "[tools][trace]") {
  const Run run;
  const std::string two = cells_text(run.comparison, 2);
  CHECK_THAT(two, ContainsSubstring("0B0") && ContainsSubstring("1B0"));
  CHECK_THAT(two, ContainsSubstring("+100.00"));
  CHECK_THAT(two, !ContainsSubstring("0F0"));
  CHECK_THAT(two, ContainsSubstring("2 more cells deviate less"));
  CHECK_THAT(cells_text(run.comparison, 4), !ContainsSubstring("more cells"));
}

}  // namespace stagecraft::tests
