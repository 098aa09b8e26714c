#include "stagecraft/scheduler/planners/graphpipe/tree/series_parallel.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "stagecraft/scheduler/planners/graphpipe/contraction.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::graphpipe {
namespace {

const Edges kN{{0, 2}, {0, 3}, {1, 3}};  // a -> c, a -> d, b -> d

TEST_CASE("dependencies are added where they lengthen the longest path least",
          "[scheduler][planners]") {
  const auto tree_of = [](std::vector<double> times) { return series_parallel(4, kN, times); };
  CHECK(to_string(tree_of({1, 1, 1, 1})) == "S(P(0 1) P(2 3))");
  CHECK(critical_path(tree_of({1, 1, 1, 1}), std::vector<double>{1, 1, 1, 1}) == 2);
  CHECK(to_string(tree_of({1, 3, 2, 1})) == "S(P(S(0 2) 1) 3)");
  CHECK(critical_path(tree_of({1, 3, 2, 1}), std::vector<double>{1, 3, 2, 1}) == 4);
  CHECK(to_string(tree_of({1, 2, 3, 1})) == "S(0 P(S(1 3) 2))");
  CHECK(critical_path(tree_of({1, 2, 3, 1}), std::vector<double>{1, 2, 3, 1}) == 4);
}

TEST_CASE("a series-parallel graph keeps its own tree", "[scheduler][planners]") {
  const Edges edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  const std::vector<double> times{1, 1, 1, 1};
  CHECK(to_string(series_parallel(4, edges, times)) == "S(0 P(1 2) 3)");
  CHECK(critical_path(4, edges, times) == 3);
}

TEST_CASE("any graph gets a tree that keeps its order and has every operator once",
          "[scheduler][planners]") {
  const unsigned seed = GENERATE(range(1U, 40U));
  std::uint64_t state = seed * 2654435761U;
  const auto random = [&](int below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(below));
  };
  const int operators = 4 + random(20);
  std::vector<double> times;
  Edges edges;
  for (int op = 0; op < operators; ++op) {
    times.push_back(1 + random(9));
    for (int before = 0; before < op; ++before) {
      if (random(operators) < 3) {
        edges.emplace_back(before, op);
      }
    }
  }
  const SpTree tree = series_parallel(operators, edges, times);
  const std::vector<int> order = tree.operators(tree.root);
  REQUIRE(std::set<int>(order.begin(), order.end()).size() == order.size());
  REQUIRE(order.size() == static_cast<std::size_t>(operators));
  for (const auto& [from, to] : edges) {
    CHECK(std::ranges::find(order, from) < std::ranges::find(order, to));
  }
  CHECK(critical_path(tree, times) >= critical_path(operators, edges, times));
}

TEST_CASE("cheap operators become one with a neighbor, and no cycle arises",
          "[scheduler][planners]") {
  // The skip 1 -> 4 goes into the other branch. Operator 1 costs nothing, so 0 then feeds both.
  const Edges edges{{0, 1}, {1, 2}, {0, 3}, {3, 4}, {1, 4}, {2, 5}, {4, 5}};
  const std::vector<double> times{20, 0.1, 20, 20, 20, 20};
  REQUIRE(!sp_tree_of(6, edges).has_value());
  const Contraction made = contract(6, edges, times, 0.01);
  CHECK(made.members == std::vector<std::vector<int>>{{0, 1}, {2}, {3}, {4}, {5}});
  CHECK(made.edges == Edges{{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 3}, {3, 4}});
  const auto tree = sp_tree_of(5, made.edges);
  REQUIRE(tree.has_value());
  CHECK(to_string(*tree) == "S(0 P(1 S(2 3)) 4)");
}

TEST_CASE("a long chain shrinks to operators that each matter", "[scheduler][planners]") {
  constexpr int kOperators = 1000;
  Edges edges;
  for (int op = 0; op + 1 < kOperators; ++op) {
    edges.emplace_back(op, op + 1);
  }
  const std::vector<double> times(kOperators, 1);
  const Contraction made = contract(kOperators, edges, times, 0.01);
  CHECK(made.members.size() <= 100);
  CHECK(made.members.size() >= 50);
  for (std::size_t i = 1; i < made.members.size(); ++i) {
    CHECK(made.members[i].front() == made.members[i - 1].back() + 1);
  }
}

TEST_CASE("nothing is contracted where nothing is cheap", "[scheduler][planners]") {
  CHECK(contract(4, kN, std::vector<double>{1, 1, 1, 1}, 0.01).members.size() == 4);
}

}  // namespace
}  // namespace stagecraft::graphpipe
