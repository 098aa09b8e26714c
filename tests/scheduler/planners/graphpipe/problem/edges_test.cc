#include "stagecraft/scheduler/planners/graphpipe/problem/edges.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::graphpipe {
namespace {

const Edges kDiamond{{0, 2}, {0, 1}, {1, 3}, {2, 3}};

TEST_CASE("neighbors stand in the order of the edges", "[scheduler][planners]") {
  const auto graph = neighbors_of(5, kDiamond);
  CHECK(graph.succs[0] == std::vector{2, 1});
  CHECK(graph.preds[3] == std::vector{1, 2});
  CHECK(graph.preds[0].empty());
  CHECK(graph.succs[4].empty());
}

TEST_CASE("edges between groups appear once, and none within a group", "[scheduler][planners]") {
  CHECK(edges_between(kDiamond, {0, 1, 1, 2}) == Edges{{0, 1}, {1, 2}});
  CHECK(edges_between(kDiamond, {7, 7, 7, 7}).empty());
  CHECK(edges_between(kDiamond, {0, 2, 1, 3}) == Edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}});
}

}  // namespace
}  // namespace stagecraft::graphpipe
