#include "stagecraft/scheduler/planners/pfeife/cut_cost.h"

#include <random>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/pfeife.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/planners/pfeife/phase_barriers.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/scheduler/planners/chain_costs.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr double kNoCostLimit = std::numeric_limits<double>::infinity();

double step_time(const Costs& costs, const Schedule& schedule, const std::vector<int>& cuts) {
  const WorkGraph graph = WorkGraph::of(costs, costs.samples);
  const OperatorRow row(graph);
  return CutCost(row, costs.links, schedule, kNoCostLimit).step_time(cuts);
}

TEST_CASE("a step takes what its critical path does", "[scheduler][planners]") {
  Costs costs = chain_costs({15, 10});
  costs.links.usual.latency = 1;
  CHECK(step_time(costs, gpipe(2, 2), {1}) == 122);
  CHECK(step_time(costs, one_f_one_b(2, 2), {1}) == 107);
  costs.operators[1].update = 50;
  CHECK(step_time(costs, gpipe(2, 2), {1}) == 15 + 15 + 1 + 10 + 40 + 50);  // row 1 ends at 81
  CHECK(step_time(chain_costs(std::vector<double>(12, 1), 1),
                  pfeife(2, 4, {.extra = {1, 0}}),
                  {7}) == 85);
}

TEST_CASE("a row's peak is what it holds and keeps, and what one task needs",
          "[scheduler][planners]") {
  Costs costs = chain_costs({1, 1}, 0);
  costs.parameters = {{"first", 25, 100}, {"second", 20, 80}};
  costs.operators[0].parameters = {"first"};
  costs.operators[0].kept = 10;
  costs.operators[0].transient = 14;
  costs.operators[1].parameters = {"second"};
  costs.operators[1].kept = 6;
  costs.operators[1].transient = 9;
  const WorkGraph graph = WorkGraph::of(costs, 1);
  const OperatorRow row(graph);
  const auto peaks = [&](std::vector<int> extra) {
    const Schedule schedule = pfeife(2, 4, {.extra = std::move(extra)});
    const Timeline timeline =
        simulate(schedule, schedule.stage_graph(), costs_of(costs, graph, {{0}, {1}}));
    const CutCost::Peak most =
        CutCost(row, costs.links, schedule, kNoCostLimit).peak(std::vector{1});
    CHECK(most.row == 0);
    CHECK(most.bytes == timeline.rows[0].peak_bytes);
    return std::pair(timeline.rows[0].peak_bytes, timeline.rows[1].peak_bytes);
  };
  CHECK(peaks({0, 0}) == std::pair(124.0, 89.0));
  CHECK(peaks({1, 0}) == std::pair(134.0, 89.0));
  CHECK(peaks({2, 3}) == std::pair(144.0, 107.0));
}

TEST_CASE("a microbatch in flight holds what its stage read and was sent",
          "[scheduler][planners]") {
  Costs costs = chain_costs({1, 1}, 5);
  costs.operators[0].input = 3;
  const WorkGraph graph = WorkGraph::of(costs, 1);
  const OperatorRow row(graph);
  CHECK(CutCost(row, costs.links, gpipe(2, 4), kNoCostLimit).peak(std::vector{1}).bytes == 20);
  costs.operators[1].reads.clear();
  const WorkGraph apart = WorkGraph::of(costs, 1);
  const OperatorRow row_apart(apart);
  CHECK(CutCost(row_apart, costs.links, gpipe(2, 4), kNoCostLimit).peak(std::vector{1}).bytes ==
        12);
}

/// Makes operators that read some of those before them, with some values that several read.
Costs tangled(int operators, unsigned seed) {
  std::minstd_rand random(seed);
  const auto some = [&] { return static_cast<double>(1 + random() % 9); };
  Costs costs;
  costs.links.usual = {.latency = 1, .bandwidth = 4};
  costs.links.each[{1, 0}] = {.latency = 3, .bandwidth = 2};
  for (int id = 0; id < operators; ++id) {
    OperatorCost op{.id = id,
                    .forward = some(),
                    .backward_input = some(),
                    .backward_weight = some(),
                    .kept = some(),
                    .transient = some()};
    for (int k = 0; id > 0 && k < 2; ++k) {
      const int producer = static_cast<int>(random() % static_cast<unsigned>(id));
      op.reads.push_back({producer, static_cast<int>(random() % 2), 8});
    }
    if (random() % 2 == 0) {
      op.parameters = {random() % 3 == 0 ? "shared" : "own"};
    }
    costs.operators.push_back(std::move(op));
  }
  costs.parameters = {{"shared", 1, 16}, {"own", 1, 4}};
  return costs;
}

TEST_CASE("any cut of any graph takes as long as simulated, with any builder's schedule",
          "[scheduler][planners]") {
  const Costs costs = tangled(40, GENERATE(1u, 2u, 3u));
  const WorkGraph graph = WorkGraph::of(costs, costs.samples);
  const OperatorRow row(graph);
  for (const char* name : {"1f1b", "zb-h1", "zb-v", "interleaved", "hanayo", "pfeife"}) {
    CAPTURE(name);
    const Schedule schedule = build_schedule(name, {.devices = 4, .microbatches = 4});
    CutCost cost(row, costs.links, schedule, kNoCostLimit);
    std::minstd_rand random(7);
    for (int i = 0; i < 10; ++i) {
      std::vector<int> cuts;
      for (int s = 1; s < cost.stages(); ++s) {
        cuts.push_back((40 / cost.stages()) * s + static_cast<int>(random() % 3));
      }
      const StageOperators stages = stages_of_cuts(cuts, 40);
      const Timeline timeline =
          simulate(schedule, stage_graph_of(graph, stages), costs_of(costs, graph, stages));
      CHECK(cost.step_time(cuts) == Catch::Approx(timeline.makespan).epsilon(1e-12));
    }
  }
}

TEST_CASE("a stage's work is that of its operators", "[scheduler][planners]") {
  const Costs costs = tangled(40, 5);
  const WorkGraph graph = WorkGraph::of(costs, costs.samples);
  const OperatorRow row(graph);
  const StageOperators stages = stages_of_cuts(std::vector{7, 8, 30}, 40);
  REQUIRE(stages[1] == std::vector{7});
  for (const std::vector<int>& stage : stages) {
    const StageWork expected = work_of(graph, stage);
    const StageWork found = row.work(stage.front(), stage.back() + 1);
    CHECK(found.backward() == expected.backward());
    CHECK(found.kept == expected.kept);
    CHECK(found.transient == expected.transient);
    CHECK(found.held == expected.held);
  }
}

TEST_CASE("replicas of a model's stages are cut alike", "[scheduler][planners]") {
  const Costs costs = chain_costs(std::vector<double>(8, 1), 0);
  const Schedule schedule = build_schedule("chimera", {.devices = 4, .microbatches = 4});
  const WorkGraph graph = WorkGraph::of(costs, 1);
  const OperatorRow row(graph);
  CutCost cost(row, costs.links, schedule, kNoCostLimit);
  CHECK(cost.stages() == 4);
  Costs stages;
  stages.stages.each.assign(8, {.forward = 2, .backward = 4});
  CHECK(cost.step_time(std::vector{2, 4, 6}) ==
        simulate(schedule, schedule.stage_graph(), stages).makespan);
}

TEST_CASE("a schedule that does not suit the model is refused", "[scheduler][planners]") {
  const Costs costs = chain_costs({1, 1, 1});
  const WorkGraph graph = WorkGraph::of(costs, 1);
  const OperatorRow row(graph);
  CHECK_THAT(refusal([&] { CutCost(row, costs.links, gpipe(4, 2), kNoCostLimit); }),
             ContainsSubstring("4 stages and the model 3 operators"));
  const Schedule backwards = Schedule::parse("@form list\n0F0 0B0\n1B0 1F0");
  CHECK_THAT(
      refusal([&] { CutCost(row, costs.links, backwards, kNoCostLimit); }, Errc::ScheduleInvalid),
      ContainsSubstring("wait for each other"));
}

}  // namespace
}  // namespace stagecraft
