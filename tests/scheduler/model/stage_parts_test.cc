#include "stagecraft/scheduler/model/stage_parts.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Edge = StageGraph::Edge;

TEST_CASE("stages are whole again without the edges between their parts",
          "[scheduler][stage-parts]") {
  // Stage 1 is the parts 1 to 3; part 2 runs on the driver. Part 1 also feeds stage 2.
  StageGraph graph = StageGraph::from_edges(5, {{0, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 3}, {3, 4}});
  graph.set_name(StageId(4), "last");
  graph.set_needs_weight_grad(StageId(2), false);
  graph.add_tied({.name = "inside", .stages = {StageId(1), StageId(3)}});
  graph.add_tied(
      {.name = "across", .stages = {StageId(0), StageId(1), StageId(3)}, .reduced = true});
  const StageParts parts{{StageId(0), "in"},
                         {StageId(1), "head"},
                         {StageId(1), "head", true},
                         {StageId(1), "head"},
                         {StageId(2), "last"}};
  const StageGraph whole = whole_stages(graph, parts);
  CHECK(whole.edges() == std::vector<Edge>{{0, 1}, {1, 2}});
  CHECK(whole.name(StageId(1)) == "head");
  REQUIRE(whole.tied().size() == 1);
  CHECK(whole.tied().front().name == "across");
  CHECK((whole.tied().front().stages == std::vector<StageId>{StageId(0), StageId(1)}));
  CHECK(whole.tied().front().reduced);
  CHECK(whole.needs_input_grad(StageId(1)));
  CHECK_FALSE(whole.needs_input_grad(StageId(0)));
}

TEST_CASE("a stage owes a gradient only to other stages", "[scheduler][stage-parts]") {
  // A frozen stage before it; its parts owe each other gradients.
  StageGraph graph = StageGraph::chain(3);
  graph.freeze({0});
  const StageParts parts{{StageId(0), "a"}, {StageId(1), "b"}, {StageId(1), "b", true}};
  const StageGraph whole = whole_stages(graph, parts);
  CHECK_FALSE(whole.has_backward(StageId(0)));
  CHECK_FALSE(whole.needs_input_grad(StageId(1)));
  CHECK(whole.needs_weight_grad(StageId(1)));
}

}  // namespace
}  // namespace stagecraft
