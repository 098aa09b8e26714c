#include "stagecraft/scheduler/dag/dag_source.h"

#include <cstddef>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("an edge between stages is a tensor and its gradient, named by the number of the edge",
          "[scheduler][dag]") {
  const StageGraph graph = StageGraph::from_edges(4, {{2, 3}, {0, 2}, {1, 3}, {0, 1}});
  const DagSource source = bare_source(graph);
  REQUIRE(source.tensors.size() == 4);
  std::vector<StageGraph::Edge> edges;
  for (std::size_t t = 0; t < 4; ++t) {
    const DagTensor& tensor = source.tensors[t];
    edges.emplace_back(tensor.from.value, tensor.to.value);
    CHECK(tensor.activation == EdgeId(2 * t));
    CHECK(tensor.gradient == EdgeId(2 * t + 1));
    CHECK(tensor.owes_gradient);
  }
  CHECK(edges == graph.edges());
}

TEST_CASE("a frozen stage has no bytes, and is owed no gradient if nothing before it trains",
          "[scheduler][dag][surplus]") {
  StageGraph graph = StageGraph::chain(4);
  graph.freeze({0, 2});
  const DagSource source = bare_source(graph);
  std::vector<bool> trains, owes;
  for (const std::vector<DagChunk>& chunks : source.chunks) {
    REQUIRE(chunks.size() == 1);
    trains.push_back(chunks.front().parameter_bytes > 0);
  }
  for (const DagTensor& tensor : source.tensors) {
    owes.push_back(tensor.owes_gradient);
  }
  CHECK(trains == std::vector{false, true, false, true});
  CHECK(owes == std::vector{false, true, true});
}

TEST_CASE("parameters that stages share are ties", "[scheduler][dag]") {
  StageGraph graph = StageGraph::chain(3);
  graph.add_tied({.name = "embed.weight", .stages = {StageId(0), StageId(2)}});
  const DagSource source = bare_source(graph);
  REQUIRE(source.ties.size() == 1);
  CHECK(source.ties[0].name == "embed.weight");
  CHECK(source.ties[0].stages == std::vector{StageId(0), StageId(2)});
}

}  // namespace
}  // namespace stagecraft
