#include "stagecraft/scheduler/planners/request/work_graph.h"

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns costs of four operators: 0 feeds 1 and 2, which feed 3; 0 and 3 use one parameter.
Costs diamond() {
  Costs costs;
  costs.samples = 2;
  costs.parameters = {{"shared", 10, 40}, {"own", 1, 4}};
  costs.operators = {
      {.id = 0, .forward = 1, .kept = 10, .transient = 9, .input = 8, .parameters = {"shared"}},
      {.id = 1, .forward = 2, .kept = 20, .transient = 25, .reads = {{0, 0, 6}}},
      {.id = 2, .forward = 3, .reads = {{0, 0, 6}, {0, 1, 2}}, .parameters = {"own"}},
      {.id = 5, .forward = 4, .reads = {{1, 0, 4}, {2, 0, 4}}, .parameters = {"shared", "own"}}};
  return costs;
}

std::string failure_of(const Costs& costs, int samples = 2) {
  return refusal([&] { (void)WorkGraph::of(costs, samples); }, Errc::UsageArgument);
}

TEST_CASE("operators are called by their place and know who reads them", "[scheduler][planners]") {
  const WorkGraph graph = WorkGraph::of(diamond(), 2);
  REQUIRE(graph.size() == 4);
  CHECK(std::ranges::equal(graph.succs(0), std::vector{1, 2}));
  CHECK(std::ranges::equal(graph.preds(3), std::vector{1, 2}));
  CHECK(graph.edges().size() == 5);
  CHECK(std::ranges::equal(graph.parameters(3), std::vector{0, 1}));
}

TEST_CASE("what a stage costs: parameters once, the peak beyond what is kept",
          "[scheduler][planners]") {
  const WorkGraph graph = WorkGraph::of(diamond(), 2);
  const std::vector<int> all{0, 1, 2, 3};
  const StageWork work = work_of(graph, all);
  CHECK(work.forward == 10);
  CHECK(work.kept == 30);
  CHECK(work.transient == 5);  // 10 kept and 25 more, of which 30 stay
  CHECK(work.held == 44);
  CHECK(work.input == 8);
}

TEST_CASE("what halves of a backward hold adds up from the last operator to the first",
          "[scheduler][planners][memory]") {
  Costs costs;
  costs.operators = {
      {.id = 0, .kept = 10, .transient = 15, .waiting = 12, .gradient = 4, .input = 1},
      {.id = 1, .kept = 20, .transient = 24, .waiting = 8, .gradient = 3, .reads = {{0, 0, 7}}},
      {.id = 2, .kept = 5, .transient = 8, .waiting = 6, .gradient = 2, .reads = {{1, 0, 7}}}};
  const WorkGraph graph = WorkGraph::of(costs, 1);
  const StageWork work = work_of(graph, std::vector<int>{0, 1, 2});
  CHECK(work.waiting == 26);
  CHECK(work.input_transient == 2 + 3 + 5);  // at operator 0, with the gradients of both behind it
  CHECK(work.weight_transient == 3);         // at operator 2; later ones hold less than was freed
  const MemoryModel memory = costs_of(costs, graph, {{0}, {1, 2}}).stages.memory;
  CHECK(memory.waiting == std::vector<double>{12 + 1, 14 + 7});
  CHECK(memory.input_transient == std::vector<double>{5, 6});
  for (OperatorCost& op : costs.operators) {
    op.waiting = op.gradient = 0;
  }
  CHECK(costs_of(costs, WorkGraph::of(costs, 1), {{0}, {1, 2}}).stages.memory.waiting.empty());
}

TEST_CASE("a value that a stage reads twice passes once, and shared parameters tie stages",
          "[scheduler][planners]") {
  const Costs costs = diamond();
  const WorkGraph graph = WorkGraph::of(costs, 2);
  const StageOperators stages{{0}, {1, 2}, {3}};
  const Costs made = costs_of(costs, graph, stages);
  CHECK(made.links.edge_bytes.at({0, 1}) == 6 + 2);
  CHECK(made.links.edge_bytes.at({1, 2}) == 8);
  CHECK(made.stages.of_stage(StageId(1)).forward == 5);
  CHECK(made.stages.memory.activations == std::vector<double>{18, 28, 8});
  CHECK(made.stages.memory.fixed == std::vector<double>{40, 4, 44});
  const StageGraph own = stage_graph_of(graph, stages);
  CHECK(own.edges() == std::vector<StageGraph::Edge>{{0, 1}, {1, 2}});
  REQUIRE(own.tied().size() == 2);
  CHECK(own.tied()[0].stages == std::vector{StageId(0), StageId(2)});
}

TEST_CASE("joined operators are one, and their results pass as their own",
          "[scheduler][planners]") {
  Costs costs = diamond();
  costs.operators[2].joined = true;
  costs.operators[2].kept = 1;
  costs.operators[2].transient = 30;
  const WorkGraph graph = WorkGraph::of(costs, 2);
  REQUIRE(graph.size() == 3);
  CHECK(std::ranges::equal(graph.ids(1), std::vector{1, 2}));
  CHECK(graph.at(1).forward == 5);
  CHECK(graph.at(1).kept == 21);
  CHECK(graph.at(1).transient == 50);
  CHECK(std::ranges::equal(graph.parameters(1), std::vector{1}));
  const StageOperators stages{{0}, {1}, {2}};
  CHECK(ids_of(graph, stages) == StageOperators{{0}, {1, 2}, {5}});
  const Costs made = costs_of(costs, graph, stages);
  CHECK(made.links.edge_bytes.at({0, 1}) == 8);
  CHECK(made.links.edge_bytes.at({1, 2}) == 8);  // one result of each of both
}

TEST_CASE("one measured size is scaled, between and beyond several lies a line",
          "[scheduler][planners]") {
  Costs costs = diamond();
  CHECK(WorkGraph::of(costs, 4).at(1).forward == 4);
  CHECK(WorkGraph::of(costs, 4).edges().front().bytes == 12);
  costs.operators_at[4] = costs.operators;
  costs.operators_at[4][1].forward = 3;
  CHECK(WorkGraph::of(costs, 2).at(1).forward == 2);
  CHECK(WorkGraph::of(costs, 3).at(1).forward == 2.5);
  CHECK(WorkGraph::of(costs, 8).at(1).forward == 5);
  CHECK(WorkGraph::of(costs, 1).at(1).forward == 1.5);
}

TEST_CASE("costs that make no graph are refused with what is wrong", "[scheduler][planners]") {
  CHECK_THAT(failure_of({}), ContainsSubstring("stagecraft profile"));
  CHECK_THAT(failure_of(diamond(), 0), ContainsSubstring("at least one sample"));
  Costs costs = diamond();
  std::swap(costs.operators[0], costs.operators[1]);
  CHECK_THAT(failure_of(costs), ContainsSubstring("reads 0, which is not among the operators"));
  costs = diamond();
  costs.operators[2].id = 1;
  CHECK_THAT(failure_of(costs), ContainsSubstring("comes after 1"));
  costs = diamond();
  costs.parameters.pop_back();
  CHECK_THAT(failure_of(costs), ContainsSubstring("uses parameter own"));
  costs = diamond();
  costs.operators_at[4] = {};
  CHECK_THAT(failure_of(costs), ContainsSubstring("profile them again"));
}

}  // namespace
}  // namespace stagecraft
