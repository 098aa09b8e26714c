#include "stagecraft/scheduler/costs/cut_costs.h"

#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

Costs costs_of_two_stages() {
  Costs costs;
  costs.stages.each = {{.forward = 2, .backward = 4}, {.forward = 4, .backward = 8}};
  costs.stages.memory.fixed = {100, 300};
  costs.stages.memory.activations = {10, 30};
  costs.links.edge_bytes = {{{0, 1}, 7}};
  return costs;
}

TEST_CASE("costs of a model cut into twice as many stages are halves", "[scheduler][costs]") {
  const Costs cut = cut_costs(costs_of_two_stages(), 2, StageGraph::chain(4));
  REQUIRE(cut.stages.each.size() == 4);
  CHECK(cut.stages.each[0].forward == 1);
  CHECK(cut.stages.each[1].backward == 2);
  CHECK(cut.stages.each[3].forward == 2);
  CHECK(cut.stages.memory.fixed == std::vector<double>{50, 50, 150, 150});
  CHECK(cut.stages.memory.activations == std::vector<double>{5, 5, 15, 15});
  CHECK(cut.links.edge_bytes.at({1, 2}) == 7);
}

TEST_CASE("costs of stages that do not divide each other add up to the same model",
          "[scheduler][costs]") {
  for (int stages = 1; stages <= 7; ++stages) {
    CAPTURE(stages);
    const Costs cut = cut_costs(costs_of_two_stages(), 2, StageGraph::chain(stages));
    double forward = 0;
    double fixed = 0;
    for (int s = 0; s < stages; ++s) {
      forward += cut.stages.of_stage(StageId(s)).forward;
      fixed += cut.stages.memory.fixed[static_cast<std::size_t>(s)];
    }
    CHECK(forward == Catch::Approx(6));
    CHECK(fixed == Catch::Approx(400));
  }
}

TEST_CASE("every copy of a model costs what the model does", "[scheduler][costs]") {
  const Schedule both_ways = dualpipe(2, 4);
  const Costs cut = cut_costs(costs_of_two_stages(), 2, both_ways.stage_graph());
  REQUIRE(cut.stages.each.size() == 4);
  double forward = 0;
  for (const Durations& d : cut.stages.each) {
    forward += d.forward;
  }
  CHECK(forward == 12);
}

TEST_CASE("a stage of several microbatches takes as many times as long", "[scheduler][costs]") {
  StageGraph graph = StageGraph::chain(2);
  graph.set_microbatch_sizes({1, 3});
  const Costs cut = cut_costs(costs_of_two_stages(), 2, graph);
  CHECK(cut.stages.each[1].forward == 12);
  CHECK(cut.stages.memory.activations == std::vector<double>{10, 90});
  CHECK(cut.stages.memory.fixed == std::vector<double>{100, 300});
}

TEST_CASE("costs are of one stage per device, unless they list more", "[scheduler][costs]") {
  CHECK(stages_of({}, 4) == 4);
  CHECK(stages_of(costs_of_two_stages(), 4) == 4);
  CHECK(stages_of(costs_of_two_stages(), 1) == 2);
}

}  // namespace
}  // namespace stagecraft
