#include "stagecraft/scheduler/dag/build.h"

#include <algorithm>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Waits = std::vector<std::string>;

/// Returns the nodes for which a node waits, in the order of its edges; in brackets those that give
/// it no data.
Waits waits_of(const TrainingDag& dag, const std::string& node) {
  Waits waits;
  for (const DagEdge& edge : dag.edges) {
    if (to_string(dag, edge.to) == node) {
      const std::string from = to_string(dag, edge.from);
      waits.push_back(edge.data ? from : "(" + from + ")");
    }
  }
  return waits;
}

/// Returns the parts that the edges of a tensor carry, in order.
std::vector<MicrobatchRange> parts_of_tensor(const TrainingDag& dag, EdgeId tensor) {
  std::vector<MicrobatchRange> parts;
  for (const DagEdge& edge : dag.edges) {
    if (edge.tensor == tensor) {
      REQUIRE(edge.part.has_value());
      parts.push_back(*edge.part);
    }
  }
  return parts;
}

TEST_CASE("each microbatch goes through all stages and back, and each update waits for all of them",
          "[scheduler][dag]") {
  const TrainingDag dag = build_dag(bare_source(StageGraph::chain(2)), 2);
  CHECK(dag.nodes.size() == 10);
  CHECK(waits_of(dag, "0F1").empty());
  CHECK(waits_of(dag, "1F1") == Waits{"0F1"});
  CHECK(waits_of(dag, "1B1") == Waits{"1F1"});
  CHECK(waits_of(dag, "0B1") == Waits{"0F1", "1B1"});
  CHECK(waits_of(dag, "update of stage 0") == Waits{"(0B0)", "(0B1)"});
  CHECK(waits_of(dag, "update of stage 1") == Waits{"(1B0)", "(1B1)"});
  CHECK(std::ranges::none_of(dag.edges, [](const DagEdge& edge) { return edge.part.has_value(); }));
}

TEST_CASE("without training there are forwards alone", "[scheduler][dag]") {
  const TrainingDag dag = build_dag(bare_source(StageGraph::chain(3)), 4, /*training=*/false);
  CHECK(dag.count(DagKind::Forward) == 12);
  CHECK(dag.nodes.size() == 12);
  CHECK(dag.edges.size() == 8);
  CHECK(dag.buckets.empty());
}

TEST_CASE("a backward without work has no edges, and a stage without weights no update",
          "[scheduler][dag][surplus]") {
  StageGraph graph = StageGraph::chain(4);
  graph.freeze({0, 2});  // no gradient goes to stage 0; through stage 2 one goes to stage 1
  const TrainingDag dag = build_dag(bare_source(graph), 1);
  CHECK(dag.count(DagKind::Backward) == 4);
  CHECK(std::ranges::none_of(dag.edges, [&](const DagEdge& edge) {
    return to_string(dag, edge.from) == "0B0" || to_string(dag, edge.to) == "0B0";
  }));
  CHECK(waits_of(dag, "1B0") == Waits{"1F0", "2B0"});
  CHECK(waits_of(dag, "2B0") == Waits{"2F0", "3B0"});
  CHECK(dag.count(DagKind::Update) == 2);
  REQUIRE(dag.buckets.size() == 2);
  CHECK(dag.buckets[0].stages == std::vector{StageId(1)});
  CHECK(dag.buckets[1].stages == std::vector{StageId(3)});
}

TEST_CASE("DSO-1: chunks run forwards in their order and backwards against it",
          "[scheduler][dag]") {
  DagSource source = bare_source(StageGraph::chain(1));
  source.chunks[0] = {{.parameter_bytes = 8},
                      {.reads = {0}, .parameter_bytes = 0},
                      {.reads = {0}, .parameter_bytes = 24}};
  const TrainingDag dag = build_dag(source, 1);
  CHECK(waits_of(dag, "0F0.1") == Waits{"0F0.0"});
  CHECK(waits_of(dag, "0F0.2") == Waits{"0F0.0", "(0F0.1)"});
  CHECK(waits_of(dag, "0B0.2") == Waits{"0F0.2"});
  CHECK(waits_of(dag, "0B0.1") == Waits{"0F0.1", "(0B0.2)"});
  CHECK(waits_of(dag, "0B0.0") == Waits{"0F0.0", "0B0.1", "0B0.2"});
  CHECK(waits_of(dag, "update of stage 0") == Waits{"(0B0.0)", "(0B0.1)", "(0B0.2)"});
  REQUIRE(dag.buckets.size() == 1);
  CHECK(dag.buckets[0].chunks == 3);
  CHECK(dag.buckets[0].bytes == 32);
}

TEST_CASE("a value leaves the chunk that makes it, and its gradient comes to the last that uses it",
          "[scheduler][dag]") {
  DagSource source = bare_source(StageGraph::chain(2));
  source.chunks.assign(2, {{.parameter_bytes = 1}, {.reads = {0}, .parameter_bytes = 1}});
  source.tensors[0].from_chunk = 0;
  source.tensors[0].gradient_chunk = 1;
  source.tensors[0].to_chunk = 1;
  const TrainingDag dag = build_dag(source, 1);
  CHECK(waits_of(dag, "1F0.0").empty());
  CHECK(waits_of(dag, "1F0.1") == Waits{"1F0.0", "0F0.0"});
  CHECK(waits_of(dag, "0B0.1") == Waits{"0F0.1", "1B0.1"});
  CHECK(waits_of(dag, "0B0.0") == Waits{"0F0.0", "0B0.1"});
}

TEST_CASE("stages of different sizes exchange the parts that both have, each once",
          "[scheduler][dag]") {
  StageGraph graph = StageGraph::chain(2);
  graph.set_microbatch_sizes({2, 3});
  const TrainingDag dag = build_dag(bare_source(graph), 6);
  CHECK(dag.count(DagKind::Forward) == 5);
  CHECK(waits_of(dag, "1F0") == Waits{"0F0", "0F1"});
  CHECK(waits_of(dag, "1F1") == Waits{"0F1", "0F2"});
  CHECK(waits_of(dag, "0B1") == Waits{"0F1", "1B0", "1B1"});
  const std::vector<MicrobatchRange> parts{{0, 2}, {2, 3}, {3, 4}, {4, 6}};
  CHECK((parts_of_tensor(dag, dag.source.tensors[0].activation) == parts));
  CHECK((parts_of_tensor(dag, dag.source.tensors[0].gradient) == parts));
}

TEST_CASE("copies of a stage share a bucket, and each has its microbatches and its update",
          "[scheduler][dag]") {
  // Three copies of a pipeline of two stages. The first copy has the last numbers.
  StageGraph graph = StageGraph::from_edges(6, {{0, 1}, {2, 3}, {4, 5}});
  graph.set_replica_pairs({{4, 2}, {2, 0}, {5, 3}, {3, 1}});
  const TrainingDag dag = build_dag(bare_source(graph), 6);
  std::vector<std::vector<int>> microbatches(6);  // by stage
  for (const DagNode& node : dag.nodes) {
    if (node.kind == DagKind::Backward) {
      microbatches[node.stage.index()].push_back(node.microbatch.value);
    }
  }
  CHECK(microbatches ==
        std::vector<std::vector<int>>{{4, 5}, {4, 5}, {2, 3}, {2, 3}, {0, 1}, {0, 1}});
  REQUIRE(dag.buckets.size() == 2);
  CHECK(dag.buckets[0].stages == std::vector{StageId(0), StageId(2), StageId(4)});
  CHECK(dag.buckets[1].stages == std::vector{StageId(1), StageId(3), StageId(5)});
  CHECK(dag.count(DagKind::Update) == 6);
  CHECK(waits_of(dag, "update of stage 2") == Waits{"(2B0)", "(2B1)"});
}

}  // namespace
}  // namespace stagecraft
