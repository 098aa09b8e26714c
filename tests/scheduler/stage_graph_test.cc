#include "stagecraft/scheduler/stage_graph.h"

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

std::vector<StageId> ids(std::initializer_list<int> numbers) {
  std::vector<StageId> list;
  for (const int n : numbers) {
    list.emplace_back(n);
  }
  return list;
}

std::vector<StageId> copy(std::span<const StageId> span) {
  return {span.begin(), span.end()};
}

TEST_CASE("a chain feeds each next stage and trains all but its input",
          "[scheduler][stage_graph]") {
  const StageGraph chain = StageGraph::chain(3);
  CHECK(chain.size() == 3);
  CHECK(chain.is_chain());
  CHECK(chain.depth() == 3);
  CHECK(chain.preds(StageId(0)).empty());
  CHECK(copy(chain.succs(StageId(0))) == ids({1}));
  CHECK_FALSE(chain.needs_input_grad(StageId(0)));
  CHECK(chain.needs_input_grad(StageId(1)));
  CHECK(chain.has_backward(StageId(0)));
}

TEST_CASE("S-1: edges are mirrored, sorted and counted once", "[scheduler][stage_graph]") {
  const StageGraph graph = StageGraph::from_edges(4, {{2, 3}, {0, 3}, {0, 3}, {1, 2}});
  CHECK(copy(graph.preds(StageId(3))) == ids({0, 2}));
  CHECK(copy(graph.succs(StageId(0))) == ids({3}));
  CHECK(graph.edges() == std::vector<StageGraph::Edge>{{0, 3}, {1, 2}, {2, 3}});
  CHECK_FALSE(graph.is_chain());
  CHECK(graph.depth() == 3);
}

TEST_CASE("no gradient is owed to a frozen prefix", "[scheduler][stage_graph]") {
  StageGraph chain = StageGraph::chain(3);
  chain.set_needs_weight_grad(StageId(0), false);
  CHECK_FALSE(chain.has_backward(StageId(0)));
  CHECK_FALSE(chain.sends_gradient(StageId(1), StageId(0)));
  CHECK(chain.sends_gradient(StageId(2), StageId(1)));
}

TEST_CASE("S-2: a cycle is representable and found", "[scheduler][stage_graph]") {
  const StageGraph graph =
      StageGraph::from_edges(6, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {4, 5}});
  CHECK_FALSE(graph.topological_order().has_value());
  const std::vector<StageId> cycle = graph.find_cycle();
  REQUIRE(cycle.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(copy(graph.succs(cycle[i]))[0] == cycle[(i + 1) % 3]);
  }
  CHECK(StageGraph::chain(4).find_cycle().empty());
  CHECK(StageGraph::from_edges(2, {{1, 1}}).find_cycle() == ids({1}));
}

TEST_CASE("an edge outside the graph is refused", "[scheduler][stage_graph]") {
  CHECK_THROWS_MATCHES(
      StageGraph::from_edges(2, {{0, 2}}), Error, MessageMatches(ContainsSubstring("stage 2")));
  CHECK_THROWS_AS(StageGraph::from_edges(-1, {}), Error);
}

TEST_CASE("replica pairs number the copies of a pipeline", "[scheduler][stage_graph]") {
  StageGraph graph = StageGraph::from_edges(4, {{0, 1}, {2, 3}});
  CHECK(graph.replicas() == 1);
  graph.set_replica_pairs({{0, 2}, {1, 3}});
  CHECK(graph.replicas() == 2);
  CHECK(graph.replica_of(StageId(1)) == 0);
  CHECK(graph.replica_of(StageId(3)) == 1);
  CHECK(graph.microbatches_per_replica(8) == 4);
  CHECK_THROWS_AS(graph.set_replica_pairs({{0, 0}}), Error);
  CHECK_THROWS_AS(graph.set_replica_pairs({{0, 9}}), Error);
}

TEST_CASE("a chain of sixty thousand stages needs no deep stack", "[scheduler][stage_graph]") {
  CHECK(StageGraph::chain(60000).depth() == 60000);
}

}  // namespace
}  // namespace stagecraft
