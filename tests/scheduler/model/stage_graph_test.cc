#include "stagecraft/scheduler/model/stage_graph.h"

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

TEST_CASE("SG-1: edges are mirrored, sorted and counted once", "[scheduler][stage_graph]") {
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

TEST_CASE("SG-2: a cycle is representable and found", "[scheduler][stage_graph]") {
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

TEST_CASE("SG-3: copies are numbered along their chain, in whatever order pairs come",
          "[scheduler][stage_graph]") {
  using Pairs = std::vector<StageGraph::Edge>;
  const Pairs pairs = GENERATE(Pairs{{4, 2}, {2, 0}, {5, 3}, {3, 1}},
                               Pairs{{2, 0}, {3, 1}, {4, 2}, {5, 3}},
                               Pairs{{3, 1}, {5, 3}, {2, 0}, {4, 2}});
  StageGraph graph = StageGraph::from_edges(6, {{0, 1}, {2, 3}, {4, 5}});
  graph.set_replica_pairs(pairs);
  CHECK(graph.replicas() == 3);
  for (int s = 0; s < 6; ++s) {
    CAPTURE(s);
    CHECK(graph.replica_of(StageId(s)) == 2 - s / 2);
  }
  CHECK(graph.replica_pairs() == Pairs{{4, 2}, {2, 0}, {5, 3}, {3, 1}});
  CHECK(graph.microbatches_per_replica(6) == 2);
  graph.set_replica_pairs({{0, 2}, {4, 0}});  // a second declaration replaces the first
  CHECK(graph.replica_of(StageId(2)) == 2);
  CHECK(graph.replica_of(StageId(5)) == 0);
}

TEST_CASE("pairs that make no chains of copies are refused, each with its reason",
          "[scheduler][stage_graph]") {
  StageGraph graph = StageGraph::chain(6);
  const auto refused = [&](const std::vector<StageGraph::Edge>& pairs, const std::string& why) {
    CHECK_THROWS_MATCHES(
        graph.set_replica_pairs(pairs), Error, MessageMatches(ContainsSubstring(why)));
  };
  refused({{0, 2}, {0, 4}}, "stage 0 is the first of two replica pairs, 0=2 and 0=4");
  refused({{0, 4}, {2, 4}}, "stage 4 is the second of two replica pairs, 0=4 and 2=4");
  refused({{0, 2}, {0, 2}}, "the replica pair 0=2 appears twice");
  refused({{0, 1}, {2, 4}, {4, 3}, {3, 2}}, "2 = 4 = 3 = 2 form a circle");
  refused({{1, 1}}, "1 = 1 form a circle");
  std::vector<StageGraph::Edge> circle;
  StageGraph large = StageGraph::chain(60'000);
  for (int s = 0; s < 60'000; ++s) {
    circle.emplace_back(s, (s + 1) % 60'000);
  }
  CHECK_THROWS_MATCHES(large.set_replica_pairs(circle),
                       Error,
                       MessageMatches(ContainsSubstring("14 = 15 = ... = 0")));
}

TEST_CASE("what does nothing follows from the gradients that stages need",
          "[scheduler][stage_graph][surplus]") {
  const auto surplus = [](const StageGraph& graph, int stage) {
    std::string letters;
    for (const CellKind kind : {CellKind::Forward,
                                CellKind::Backward,
                                CellKind::BackwardInput,
                                CellKind::BackwardWeight,
                                CellKind::Update}) {
      letters += graph.is_surplus({kind, StageId(stage), Microbatch(0)}) ? letter(kind) : '-';
    }
    return letters;
  };
  StageGraph graph = StageGraph::chain(4);
  CHECK(surplus(graph, 0) == "-----");  // the needs of the model's inputs are unknown
  graph.freeze({0, 2});
  CHECK(graph.frozen() == std::vector<int>{0, 2});
  CHECK(surplus(graph, 0) == "-BIW-");
  CHECK(surplus(graph, 1) == "--I--");  // its producer needs no gradient
  CHECK(surplus(graph, 2) == "---W-");  // stage 1 does
  CHECK(surplus(graph, 3) == "-----");
  CHECK(surplus(graph, 9) == "-----");
  graph.set_needs_input_grad(StageId(2), false);  // no gradient comes back through stage 2
  CHECK(surplus(graph, 2) == "-BIW-");
  const auto ends = [&](CellKind kind, int stage) {
    return graph.ends_backward({kind, StageId(stage), Microbatch(0)});
  };
  CHECK(ends(CellKind::BackwardWeight, 1));
  CHECK_FALSE(ends(CellKind::BackwardInput, 1));
  CHECK_FALSE(ends(CellKind::Backward, 0));
}

TEST_CASE("a frozen stage's copies are frozen with it", "[scheduler][stage_graph][surplus]") {
  StageGraph graph = StageGraph::from_edges(6, {{0, 1}, {2, 3}, {4, 5}});
  graph.set_replica_pairs({{4, 2}, {2, 0}, {1, 3}, {3, 5}});
  graph.freeze({2});
  CHECK(graph.frozen() == std::vector<int>{0, 2, 4});
  CHECK_THROWS_MATCHES(graph.freeze({6}), Error, MessageMatches(ContainsSubstring("stage 6")));
}

TEST_CASE("freezing nothing says nothing", "[scheduler][stage_graph][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({});
  CHECK_FALSE(graph.is_surplus({CellKind::BackwardInput, StageId(0), Microbatch(0)}));
  graph.freeze({1});
  CHECK(graph.is_surplus({CellKind::BackwardInput, StageId(0), Microbatch(0)}));
}

TEST_CASE("a chain of sixty thousand stages needs no deep stack", "[scheduler][stage_graph]") {
  CHECK(StageGraph::chain(60000).depth() == 60000);
}

}  // namespace
}  // namespace stagecraft
