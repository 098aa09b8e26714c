#include "stagecraft/scheduler/dag/remove_nodes.h"

#include <utility>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Ends = std::vector<std::pair<int, int>>;

/// Returns forwards with these edges of data. A forward's microbatch says which number it had.
TrainingDag numbered_forwards(int count, const Ends& edges) {
  TrainingDag dag;
  dag.source = bare_source(StageGraph::chain(1));
  dag.microbatches = count;
  for (int n = 0; n < count; ++n) {
    dag.add({.stage = StageId(0), .chunk = 0, .microbatch = Microbatch(n)});
  }
  for (const auto& [from, to] : edges) {
    dag.connect(from, to);
  }
  return dag;
}

std::vector<int> left_in(const TrainingDag& dag) {
  std::vector<int> left;
  for (const DagNode& node : dag.nodes) {
    left.push_back(node.microbatch.value);
  }
  return left;
}

/// Returns the edges between the numbers that nodes had.
Ends edges_in(const TrainingDag& dag, bool data) {
  Ends ends;
  for (const DagEdge& edge : dag.edges) {
    if (edge.data == data) {
      ends.emplace_back(dag.node(edge.from).microbatch.value, dag.node(edge.to).microbatch.value);
    }
  }
  return ends;
}

TEST_CASE("what came before a removed node still comes before what came after it",
          "[scheduler][dag]") {
  TrainingDag dag = numbered_forwards(6, {{0, 2}, {1, 2}, {2, 3}, {2, 4}, {4, 5}});
  remove_nodes(dag, {2});
  CHECK(left_in(dag) == std::vector{0, 1, 3, 4, 5});
  CHECK(edges_in(dag, /*data=*/true) == Ends{{4, 5}});
  CHECK(edges_in(dag, /*data=*/false) == Ends{{0, 3}, {0, 4}, {1, 3}, {1, 4}});
}

TEST_CASE("several removed nodes between the same two leave one edge of order",
          "[scheduler][dag]") {
  TrainingDag dag = numbered_forwards(5, {{0, 1}, {1, 4}, {0, 2}, {2, 4}, {0, 3}, {3, 4}});
  remove_nodes(dag, {1, 3});
  CHECK(left_in(dag) == std::vector{0, 2, 4});
  CHECK(edges_in(dag, /*data=*/true) == Ends{{0, 2}, {2, 4}});
  CHECK(edges_in(dag, /*data=*/false) == Ends{{0, 4}});
}

TEST_CASE("neighbors that are removed together leave the order across both", "[scheduler][dag]") {
  TrainingDag dag = numbered_forwards(6, {{0, 1}, {1, 2}, {2, 3}, {3, 5}, {1, 4}});
  remove_nodes(dag, {1, 2, 3});
  CHECK(left_in(dag) == std::vector{0, 4, 5});
  CHECK(edges_in(dag, /*data=*/false) == Ends{{0, 4}, {0, 5}});
}

TEST_CASE("a removed node at an end of the graph leaves no edge", "[scheduler][dag]") {
  TrainingDag dag = numbered_forwards(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  remove_nodes(dag, {0, 3});
  CHECK(left_in(dag) == std::vector{1, 2});
  CHECK(dag.edges.empty());
}

TEST_CASE("what stays keeps its values and its partner", "[scheduler][dag]") {
  TrainingDag dag = numbered_forwards(3, {{0, 1}});
  const int send = dag.add({.kind = DagKind::Send, .stage = StageId(0), .peer = 4});
  const int receive = dag.add({.kind = DagKind::Receive, .stage = StageId(0), .peer = send});
  const MicrobatchRange part{2, 3};
  dag.edges.push_back({.from = 1, .to = send, .tensor = EdgeId(7), .part = part});
  dag.edges.push_back({.from = receive, .to = 2, .tensor = EdgeId(7), .part = part});
  remove_nodes(dag, {0});
  REQUIRE(dag.size() == 4);
  CHECK(dag.node(2).peer == 3);
  CHECK(dag.node(3).peer == 2);
  CHECK(dag.node(0).peer == kNone);
  REQUIRE(dag.edges.size() == 2);
  for (const DagEdge& edge : dag.edges) {
    CHECK(edge.data);
    CHECK(edge.tensor == EdgeId(7));
    CHECK((edge.part == part));
  }
  CHECK(dag.edges[0].from == 0);
  CHECK(dag.edges[1].to == 1);
}

}  // namespace
}  // namespace stagecraft
