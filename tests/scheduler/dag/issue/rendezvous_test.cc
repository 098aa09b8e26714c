#include "stagecraft/scheduler/dag/issue/rendezvous.h"

#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Two ranks: each has a forward; the first sends to the second; both sum two buckets, and vote.
struct TwoRanks {
  TwoRanks() {
    dag.source = bare_source(StageGraph::chain(2));
    dag.places = {{Rank(0)}, {Rank(1)}};
    for (int r = 0; r < 2; ++r) {
      forward[r] = dag.add({.kind = DagKind::Forward, .stage = StageId(r), .place = r});
      for (int bucket = 0; bucket < 2; ++bucket) {
        sum[r][bucket] = dag.add({.kind = DagKind::AllReduce, .place = r, .bucket = bucket});
      }
      vote[r] = dag.add({.kind = DagKind::Vote, .place = r});
    }
    send = dag.add({.kind = DagKind::Send, .stage = StageId(0), .place = 0});
    receive = dag.add({.kind = DagKind::Receive, .stage = StageId(1), .place = 1, .peer = send});
    dag.node(send).peer = receive;
  }

  TrainingDag dag;
  int forward[2] = {}, sum[2][2] = {}, vote[2] = {};
  int send = 0, receive = 0;
};

std::vector<int> members_of(const Rendezvous& together, int node) {
  const auto members = together.members(together.first(node));
  return {members.begin(), members.end()};
}

TEST_CASE("a send meets its receive, a vote all votes, and a sum that of its bucket",
          "[scheduler][dag]") {
  const TwoRanks two;
  const Rendezvous together(two.dag);
  CHECK(members_of(together, two.forward[0]) == std::vector{two.forward[0]});
  CHECK(members_of(together, two.receive) == std::vector{two.send, two.receive});
  CHECK(members_of(together, two.vote[1]) == std::vector{two.vote[0], two.vote[1]});
  for (int bucket = 0; bucket < 2; ++bucket) {
    CHECK(members_of(together, two.sum[1][bucket]) ==
          std::vector{two.sum[0][bucket], two.sum[1][bucket]});
  }
}

TEST_CASE("sums of ties, and exchanges within a rank list, are kept apart", "[scheduler][dag]") {
  TrainingDag dag;
  dag.source = bare_source(StageGraph::chain(1));
  dag.places = {{Rank(0)}, {Rank(1)}};
  const int bucket = dag.add({.kind = DagKind::AllReduce, .place = 0, .bucket = 0});
  const int tie = dag.add({.kind = DagKind::AllReduce, .place = 0, .tie = 0});
  const int far_tie = dag.add({.kind = DagKind::AllReduce, .place = 1, .tie = 0});
  const int gather = dag.add({.kind = DagKind::AllGather, .place = 0, .bucket = 0});
  dag.microbatches = 2;
  const auto scatter_after = [&](int microbatch) {
    return dag.add({.kind = DagKind::ReduceScatter,
                    .stage = StageId(0),
                    .microbatch = Microbatch(microbatch),
                    .place = 0,
                    .bucket = 0});
  };
  const int of_one = scatter_after(0);
  const int of_other = scatter_after(1);
  const Rendezvous together(dag);
  CHECK(members_of(together, far_tie) == std::vector{tie, far_tie});
  for (const int alone : {bucket, gather, of_one, of_other}) {
    CHECK(members_of(together, alone) == std::vector{alone});
  }
}

TEST_CASE("copies in the schedule sum together behind microbatches of one number",
          "[scheduler][dag][sharding]") {
  StageGraph graph = StageGraph::chain(2);
  graph.set_replica_pairs({{0, 1}});
  TrainingDag dag;
  dag.source = bare_source(graph);
  dag.microbatches = 4;
  dag.places = {{Rank(0)}, {Rank(1)}};
  const auto scatter_after = [&](int stage, int microbatch) {
    return dag.add({.kind = DagKind::ReduceScatter,
                    .stage = StageId(stage),
                    .microbatch = Microbatch(microbatch),
                    .place = stage,
                    .bucket = 0});
  };
  const int first = scatter_after(0, 0), second = scatter_after(0, 1);
  const int far_second = scatter_after(1, 3), far_first = scatter_after(1, 2);
  const Rendezvous together(dag);
  CHECK(members_of(together, far_first) == std::vector{first, far_first});
  CHECK(members_of(together, second) == std::vector{second, far_second});
}

TEST_CASE("nodes that happen together come after all that any of them needs", "[scheduler][dag]") {
  TwoRanks two;
  two.dag.connect(two.forward[0], two.send);
  two.dag.connect(two.forward[1], two.receive, /*data=*/false);
  two.dag.connect(two.receive, two.sum[1][1]);
  two.dag.connect(two.sum[0][1], two.sum[0][0], /*data=*/false);
  two.dag.connect(two.sum[1][0], two.vote[1]);
  const auto order = topological_order(two.dag, DagAdjacency(two.dag), Rendezvous(two.dag));
  CHECK(order == std::vector{two.forward[0],
                             two.forward[1],
                             two.send,
                             two.receive,
                             two.sum[0][1],
                             two.sum[1][1],
                             two.sum[0][0],
                             two.sum[1][0],
                             two.vote[0],
                             two.vote[1]});
}

TEST_CASE("what waits for a cycle of two ranks is missing from the order", "[scheduler][dag]") {
  TwoRanks two;
  // Each rank starts another of the two sums first, so neither is complete.
  two.dag.connect(two.sum[0][0], two.sum[0][1], /*data=*/false);
  two.dag.connect(two.sum[1][1], two.sum[1][0], /*data=*/false);
  two.dag.connect(two.sum[1][0], two.vote[1]);
  const auto order = topological_order(two.dag, DagAdjacency(two.dag), Rendezvous(two.dag));
  CHECK(order == std::vector{two.forward[0], two.forward[1], two.send, two.receive});
  CHECK(find_cycle(two.dag).empty());  // no rank by itself waits in a circle
}

}  // namespace
}  // namespace stagecraft
