/// Tests that measurements of a run become costs of other schedules, whichever halves of backwards
/// it ran, and that costs that cannot predict a schedule are reported.

#include "stagecraft/scheduler/measured/costs_of_run.h"

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/costs/costs_misfit.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

/// Returns a step in which each row ran one task of each of these kinds and lengths, with one row
/// per stage.
Measurements measured(const std::vector<std::pair<CellKind, double>>& tasks) {
  MeasuredStep step;
  double end = 0;
  for (int stage = 0; stage < 2; ++stage) {
    MeasuredRow& row = step.rows.emplace_back();
    for (const auto& [kind, length] : tasks) {
      const double start = end;
      end += length;
      row.tasks.push_back({{kind, StageId(stage), Microbatch(0)}, {start, end}, {}});
    }
  }
  step.rows[1].tasks.front().inputs = {{.from_row = 0, .made = 1, .arrived = 1.25}};
  step.rows[0].tasks.back().inputs = {{.from_row = 1, .made = 2, .arrived = 2.5}};
  step.time = {0, end};
  Measurements all;
  all.add(step);
  return all;
}

Costs costs_of(const std::string& text) {
  return parse_costs(text).costs;
}

std::string misfit(const Costs& costs, const std::string& name, const BuildRequest& request) {
  const Schedule schedule = build_schedule(name, request);
  return costs_misfit(costs, schedule, schedule.stage_graph()).value_or("");
}

}  // namespace

TEST_CASE("a backward that ran whole is divided as its operators are", "[scheduler][costs]") {
  Costs known;
  known.stages.each = {{.backward = 4, .backward_input = 1, .backward_weight = 3},
                       {.backward = 4, .backward_input = 2, .backward_weight = 3}};
  known.stages.memory.fixed = {7, 8};
  known.stages.usual.forward = 9;
  known.device = {.name = "this", .threads = 1, .processors = 2};
  const auto run = measured({{CellKind::Forward, 1}, {CellKind::Backward, 2}});
  const Costs costs = costs_of_run(run, known, StageGraph::chain(2));
  REQUIRE(costs.stages.each.size() == 2);
  CHECK(costs.stages.each[0].forward == Approx(1));
  CHECK(costs.stages.each[0].backward == Approx(2));
  CHECK(costs.stages.each[0].backward_input == Approx(0.5));
  CHECK(costs.stages.each[0].backward_weight == Approx(1.5));
  // These halves are known to take longer than the whole.
  CHECK(costs.stages.each[1].backward_input == Approx(1));
  CHECK(costs.stages.each[1].backward_weight == Approx(1.5));
  CHECK(costs.stages.memory.fixed == std::vector<double>{7, 8});
  CHECK(costs.stages.usual == Durations());
  CHECK(costs.device.processors == 0);
  CHECK(costs.device.name == "this");
  CHECK(costs.links.each.at({0, 1}).latency == Approx(0.25));
  CHECK(costs.links.each.at({1, 0}).latency == Approx(0.5));
}

TEST_CASE("halves that ran add up to a backward, as far as they are known to",
          "[scheduler][costs]") {
  const auto run = measured(
      {{CellKind::Forward, 1}, {CellKind::BackwardInput, 2}, {CellKind::BackwardWeight, 1}});
  CHECK(costs_of_run(run, {}, StageGraph::chain(2)).stages.each[1] ==
        Durations{.forward = 1, .backward = 3, .backward_input = 2, .backward_weight = 1});
  Costs known;
  known.stages.usual = {.backward = 2, .backward_input = 1.5, .backward_weight = 1.5};
  CHECK(costs_of_run(run, known, StageGraph::chain(2)).stages.each[1].backward == Approx(2));
}

TEST_CASE("a half that does nothing takes no time, whoever simulates it", "[scheduler][costs]") {
  StageGraph graph = StageGraph::chain(2);
  graph.set_needs_input_grad(StageId(0), false);
  graph.set_needs_weight_grad(StageId(1), false);
  for (const auto& run : {measured({{CellKind::Forward, 1}, {CellKind::Backward, 3}}),
                          measured({{CellKind::Forward, 1},
                                    {CellKind::BackwardInput, 1},
                                    {CellKind::BackwardWeight, 2}})}) {
    const Costs costs = costs_of_run(run, {}, graph);
    CHECK(costs.stages.each[0].backward_input == 0);
    CHECK(costs.stages.each[0].backward_weight == Approx(3));
    CHECK(costs.stages.each[1].backward_input == Approx(3));
    CHECK(costs.stages.each[1].backward_weight == 0);
    const Schedule split = build_schedule("zb-h1", {.devices = 2, .microbatches = 4});
    CHECK(simulate(split, graph, costs).makespan ==
          simulate(split, StageGraph::chain(2), costs).makespan);
  }
}

TEST_CASE("costs of a run are written and read back to the bit", "[scheduler][costs]") {
  const auto run = measured({{CellKind::Forward, 0.1}, {CellKind::Backward, 0.7}});
  const Costs costs = costs_of_run(run, {}, StageGraph::chain(2));
  CHECK(parse_costs(to_json(costs)).costs == costs);
  CHECK_FALSE(costs_misfit(costs, one_f_one_b(2, 4), StageGraph::chain(2)));
}

TEST_CASE("costs that cannot predict a schedule are told", "[scheduler][costs]") {
  const auto run = measured({{CellKind::Forward, 1}, {CellKind::Backward, 2}});
  const Costs costs = costs_of_run(run, {}, StageGraph::chain(2));
  CHECK(misfit(costs, "1f1b", {.devices = 2, .microbatches = 4}).empty());
  CHECK(misfit(costs, "zb-auto", {.devices = 2, .microbatches = 4}).empty());
  CHECK(misfit(costs, "1f1b", {.devices = 3, .microbatches = 4}) ==
        "it has the times of 2 stages, but the schedule has 3 stages");
  CHECK(misfit(costs, "1f1b", {.devices = 1, .microbatches = 4}) ==
        "it has the times of 2 stages, but the schedule has 1 stage");
  CHECK(misfit(costs, "chimera", {.devices = 2, .microbatches = 4}) ==
        "it has the times of 2 stages, but the schedule has 4 stages");
  CHECK(misfit({}, "1f1b", {.devices = 2, .microbatches = 4}) == "it lacks the times of stages");
  Costs one_way = costs;
  one_way.links.each.erase({1, 0});
  CHECK(misfit(one_way, "1f1b", {.devices = 2, .microbatches = 4}) ==
        "it lacks the link from row 1 to row 0");
  one_way.links.usual.latency = 1;
  CHECK(misfit(one_way, "1f1b", {.devices = 2, .microbatches = 4}).empty());
  Costs far = costs;
  far.links.each[{0, 5}] = {};
  CHECK(misfit(far, "1f1b", {.devices = 2, .microbatches = 4}) ==
        "it has a link of row 5, but the schedule has 2 rows");
}

TEST_CASE("stated costs may leave the usual to its default", "[scheduler][costs]") {
  CHECK(misfit(costs_of(R"({"version":1,"stages":{"usual":{"F":0.1,"B":0.3}}})"),
               "interleaved",
               {.devices = 2, .microbatches = 4})
            .empty());
  CHECK(misfit(costs_of(R"({"version":1,"stages":{"usual":{"F":0.1},
                                                  "each":[{"stage":0,"F":0.2}]}})"),
               "1f1b",
               {.devices = 4, .microbatches = 4})
            .empty());
  CHECK_THAT(misfit(costs_of(R"({"version":1,"stages":{"each":[{"stage":0,"F":0.2}]}})"),
                    "1f1b",
                    {.devices = 4, .microbatches = 4}),
             ContainsSubstring("1 stage, but the schedule has 4"));
}

}  // namespace stagecraft
