#include "stagecraft/scheduler/planners/graphpipe/tree/sp_tree.h"

#include <algorithm>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::graphpipe {
namespace {

std::string tree_of(int operators, const Edges& edges) {
  const auto tree = sp_tree_of(operators, edges);
  return tree ? to_string(*tree) : "none";
}

TEST_CASE("chains, branches and what they make together are recognized", "[scheduler][planners]") {
  CHECK(tree_of(1, {}) == "0");
  CHECK(tree_of(3, {{0, 1}, {1, 2}}) == "S(0 1 2)");
  CHECK(tree_of(3, {}) == "P(0 1 2)");
  CHECK(tree_of(5, {{0, 1}, {2, 3}, {1, 4}, {3, 4}}) == "S(P(S(0 1) S(2 3)) 4)");
  CHECK(tree_of(5, {{0, 1}, {1, 2}, {0, 3}, {2, 4}, {3, 4}}) == "S(0 P(S(1 2) 3) 4)");
}

TEST_CASE("every last operator may feed every first one of what follows", "[scheduler][planners]") {
  CHECK(tree_of(4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}}) == "S(P(0 1) P(2 3))");
  CHECK(tree_of(5, {{0, 3}, {1, 3}, {2, 3}, {0, 4}, {1, 4}, {2, 4}}) == "S(P(0 1 2) P(3 4))");
}

TEST_CASE("an edge beside a path changes nothing", "[scheduler][planners]") {
  const Edges residual{{0, 1}, {0, 2}, {1, 2}, {2, 3}, {0, 3}};
  CHECK(reduced_edges(4, residual) == Edges{{0, 1}, {1, 2}, {2, 3}});
  CHECK(tree_of(4, residual) == "S(0 1 2 3)");
}

TEST_CASE("branches in branches are kept apart", "[scheduler][planners]") {
  // 0 -> (1 -> (2 || 3) -> 4 || 5) -> 6
  CHECK(tree_of(7, {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {0, 5}, {4, 6}, {5, 6}}) ==
        "S(0 P(S(1 P(2 3) 4) 5) 6)");
}

TEST_CASE("graphs of another form have no tree", "[scheduler][planners]") {
  CHECK(tree_of(4, {{0, 2}, {0, 3}, {1, 3}}) == "none");  // the N
  // A skip from one branch into the middle of the other.
  CHECK(tree_of(6, {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {1, 4}, {2, 5}, {4, 5}}) == "none");
}

TEST_CASE("a tree reads from left to right in an order of the graph", "[scheduler][planners]") {
  const Edges edges{{0, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}, {4, 6}};
  const auto tree = sp_tree_of(7, edges);
  REQUIRE(tree.has_value());
  const std::vector<int> order = tree->operators(tree->root);
  REQUIRE(order.size() == 7);
  for (const auto& [from, to] : edges) {
    CHECK(std::ranges::find(order, from) < std::ranges::find(order, to));
  }
}

TEST_CASE("a chain of thousands is a row of as many", "[scheduler][planners]") {
  Edges edges;
  for (int op = 0; op + 1 < 5000; ++op) {
    edges.emplace_back(op, op + 1);
  }
  const auto tree = sp_tree_of(5000, edges);
  REQUIRE(tree.has_value());
  CHECK(tree->at(tree->root).children.size() == 5000);
}

}  // namespace
}  // namespace stagecraft::graphpipe
