#include "stagecraft/scheduler/dag/dag.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Nodes = std::vector<int>;

/// Returns nodes of one stage with these edges.
TrainingDag graph_of(int nodes, const std::vector<std::pair<int, int>>& edges) {
  TrainingDag dag;
  dag.source = bare_source(StageGraph::chain(1));
  for (int n = 0; n < nodes; ++n) {
    dag.add({.stage = StageId(0), .chunk = 0, .microbatch = Microbatch(n)});
  }
  for (const auto& [from, to] : edges) {
    dag.connect(from, to);
  }
  return dag;
}

/// Adds the two ends of a transfer, in this order, and returns the first.
int add_transfer(TrainingDag& dag, DagNode send, DagNode receive) {
  const int first = dag.size();
  send.kind = DagKind::Send;
  send.peer = first + 1;
  receive.kind = DagKind::Receive;
  receive.peer = first;
  dag.add(send);
  dag.add(receive);
  return first;
}

Nodes listed(std::span<const int> span) {
  return {span.begin(), span.end()};
}

TEST_CASE("a node is named by its task in the schedule, its chunk and its other end",
          "[scheduler][dag]") {
  StageGraph graph = StageGraph::from_edges(4, {{0, 1}, {2, 3}});
  graph.set_replica_pairs({{0, 2}, {1, 3}});
  TrainingDag dag;
  dag.source = bare_source(graph);
  dag.source.chunks[3].resize(2);
  dag.microbatches = 4;  // two for each copy, which counts its own from 0 (LA-1)
  const auto named = [&](const DagNode& node) { return to_string(dag, dag.add(node)); };
  const DagNode first{.stage = StageId(2), .chunk = 0, .microbatch = Microbatch(3)};
  const DagNode second{.stage = StageId(3), .chunk = 1, .microbatch = Microbatch(3)};
  CHECK(named(first) == "2F1");
  CHECK(named(second) == "3F1.1");
  CHECK(
      named(
          {.kind = DagKind::Input, .stage = StageId(0), .chunk = 0, .microbatch = Microbatch(1)}) ==
      "0I1");
  const int forward = add_transfer(dag, first, second);
  CHECK(to_string(dag, forward) == "send 2F1 to stage 3");
  CHECK(to_string(dag, forward + 1) == "receive 3F1 from stage 2");
  dag.node(forward + 1).gradient = true;
  CHECK(to_string(dag, forward + 1) == "receive 3B1 from stage 2");
  CHECK(named({.kind = DagKind::Vote}) == "vote");
  CHECK(named({.kind = DagKind::AllToAll, .stage = StageId(0)}) == "all_to_all");
}

TEST_CASE("a collective is named by all that takes part, an update by its own stage",
          "[scheduler][dag]") {
  TrainingDag dag = graph_of(0, {});
  dag.source.ties = {{.name = "embed.weight", .stages = {StageId(0), StageId(1)}}};
  dag.microbatches = 4;
  dag.places = {{Rank(3), Rank(1)}, {Rank(0)}};
  dag.buckets = {{.stages = {StageId(0)}}, {.stages = {StageId(1), StageId(4)}}};
  const auto named = [&](const DagNode& node) { return to_string(dag, dag.add(node)); };
  const DagNode step{.kind = DagKind::ReduceScatter, .stage = StageId(0), .place = 0, .bucket = 0};
  CHECK(named(step) == "reduce_scatter of stage 0");
  DagNode task = step;
  task.microbatch = Microbatch(3);
  CHECK(named(task) == "reduce_scatter of stage 0 after B3");
  task.kind = DagKind::AllGather;
  CHECK(named(task) == "all_gather of stage 0");  // of updated parameters: it serves no task
  task.serves = DagKind::Weight;
  CHECK(named(task) == "all_gather of stage 0 for W3");
  const int sum =
      dag.add({.kind = DagKind::AllReduce, .stage = StageId(1), .place = 0, .bucket = 1});
  CHECK(named({.kind = DagKind::AllReduce, .stage = StageId(4), .place = 1, .bucket = 1}) ==
        "all_reduce of stages 1, 4 over [0,1,3]");
  CHECK(to_string(dag, sum) == "all_reduce of stages 1, 4 over [0,1,3]");
  CHECK(named({.kind = DagKind::Update, .stage = StageId(4), .place = 1, .bucket = 1}) ==
        "update of stage 4");
  CHECK(named({.kind = DagKind::AllReduce, .place = 0, .tie = 0}) == "all_reduce of embed.weight");
  dag.buckets.push_back({.stages = {StageId(0)}, .first_chunk = 2});
  CHECK(to_string(dag, 0) == "reduce_scatter of stage 0.0");
}

TEST_CASE("members of a collective have its bucket, its microbatch and its purpose",
          "[scheduler][dag]") {
  TrainingDag dag = graph_of(0, {});
  dag.microbatches = 2;
  dag.places = {{Rank(3), Rank(1)}, {Rank(0)}};
  const auto add = [&](DagKind kind, int place, int bucket, int microbatch = kNone) {
    return dag.add({.kind = kind,
                    .stage = StageId(0),
                    .microbatch = Microbatch(microbatch),
                    .place = place,
                    .bucket = bucket});
  };
  const int sum = add(DagKind::AllReduce, 0, 0);
  const int other_bucket = add(DagKind::AllReduce, 1, 1);
  const int scatter = add(DagKind::ReduceScatter, 0, 0, 0);
  const int far_sum = add(DagKind::AllReduce, 1, 0);
  const int other_microbatch = add(DagKind::ReduceScatter, 1, 0, 1);
  const int for_forward = add(DagKind::AllGather, 0, 0, 0);
  const int for_backward = add(DagKind::AllGather, 1, 0, 0);
  dag.node(for_forward).serves = DagKind::Forward;
  dag.node(for_backward).serves = DagKind::Backward;
  const int exchange = add(DagKind::AllToAll, 0, kNone);
  (void)add(DagKind::AllToAll, 1, kNone);
  CHECK(members_of(dag, far_sum) == Nodes{sum, far_sum});
  CHECK(ranks_of_members(dag, far_sum) == std::vector{Rank(0), Rank(1), Rank(3)});
  for (const int alone :
       {other_bucket, scatter, other_microbatch, for_forward, for_backward, exchange}) {
    CAPTURE(alone);
    CHECK(members_of(dag, alone) == Nodes{alone});
  }
}

TEST_CASE("the first node on other ranks is found; one without a place is on none",
          "[scheduler][dag]") {
  TrainingDag dag = graph_of(4, {});
  dag.places = {{Rank(0), Rank(2)}, {Rank(1)}};
  dag.node(1).place = 0;
  dag.node(2).place = 1;
  dag.node(3).place = 1;
  CHECK(first_elsewhere(dag, {0, 1, 3, 2}, {Rank(0), Rank(2)}) == 3);
  CHECK(first_elsewhere(dag, {0, 1}, {Rank(0), Rank(2)}) == kNone);
  CHECK(first_elsewhere(dag, {0, 1}, {Rank(0)}) == 1);
}

TEST_CASE("each edge stands at both of its ends, in the order of the edges", "[scheduler][dag]") {
  const TrainingDag dag = graph_of(4, {{0, 2}, {1, 2}, {0, 1}, {0, 2}});
  const DagAdjacency edges(dag);
  CHECK(listed(edges.incoming(2)) == Nodes{0, 1, 3});
  CHECK(listed(edges.outgoing(0)) == Nodes{0, 2, 3});
  CHECK(listed(edges.incoming(1)) == Nodes{2});
  CHECK(edges.incoming(0).empty());
  CHECK(edges.outgoing(2).empty());
  CHECK(edges.incoming(3).empty());
}

TEST_CASE("of several possible nodes, the first that became possible is next", "[scheduler][dag]") {
  const auto order = [](const TrainingDag& dag) {
    return topological_order(dag, DagAdjacency(dag));
  };
  CHECK(order(graph_of(4, {{3, 0}, {2, 1}})) == Nodes{2, 3, 1, 0});
  CHECK(order(graph_of(3, {{2, 0}, {1, 0}, {2, 1}})) == Nodes{2, 1, 0});
  // The order leaves out nodes of a cycle and nodes behind it.
  CHECK(order(graph_of(5, {{0, 1}, {1, 2}, {2, 1}, {2, 3}})) == Nodes{0, 4});
}

TEST_CASE("a receive comes after its send, without an edge between them (DG-1)",
          "[scheduler][dag]") {
  TrainingDag dag = graph_of(2, {});
  const int send = add_transfer(dag, dag.node(0), dag.node(1));
  dag.connect(send + 1, 0);
  CHECK(topological_order(dag, DagAdjacency(dag)) == Nodes{1, send, send + 1, 0});
  CHECK(find_cycle(dag).empty());

  dag.connect(0, send);  // the node that needs the value comes before the send
  CHECK(topological_order(dag, DagAdjacency(dag)) == Nodes{1});
  Nodes cycle = find_cycle(dag);
  REQUIRE(cycle.size() == 3);
  std::ranges::rotate(cycle, std::ranges::min_element(cycle));
  CHECK(cycle == Nodes{0, send, send + 1});
}

TEST_CASE("of several cycles a short one is told", "[scheduler][dag]") {
  Nodes cycle = find_cycle(graph_of(6, {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {2, 4}, {4, 2}, {4, 5}}));
  std::ranges::sort(cycle);
  CHECK(cycle == Nodes{2, 4});
  CHECK(find_cycle(graph_of(3, {{0, 1}, {1, 2}, {0, 2}})).empty());
}

}  // namespace
}  // namespace stagecraft
