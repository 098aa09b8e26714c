#include "stagecraft/scheduler/planners/graphpipe/problem/partition.h"

#include <algorithm>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::graphpipe {
namespace {

/// Two towers, 0 1 and 2 3, feed the head 4.
PartitionProblem towers() {
  PartitionProblem problem{.operators = 5,
                           .edges = {{0, 1}, {2, 3}, {1, 4}, {3, 4}},
                           .devices = 3,
                           .fixed = {10, 10, 10, 10, 100}};
  problem.variants = {{.time = {1, 2, 3, 4, 5}, .kept = {7, 1, 1, 1, 1}}};
  return problem;
}

TEST_CASE("a partition stands in the order of its graph, with its figures (GW-1, GW-2)",
          "[scheduler][planners]") {
  const PartitionProblem problem = towers();
  const Partition made =
      settle(problem, {{.operators = {4}}, {.operators = {3, 2}}, {.operators = {1, 0}}});
  REQUIRE(made.stages.size() == 3);
  CHECK(made.stages[0].operators == std::vector{0, 1});
  CHECK(made.stages[1].operators == std::vector{2, 3});
  CHECK(made.stages[2].operators == std::vector{4});
  // By the graph, each tower is one stage before the head.
  CHECK(made.stages[0].in_flight == 2);
  CHECK(made.stages[1].in_flight == 2);
  CHECK(made.stages[2].in_flight == 1);
  CHECK(made.in_flight == 2);
  CHECK(made.time == 7);
  CHECK(made.devices == 3);
  CHECK(made.peak == 100 + 1);
  CHECK(stage_edges(problem, made.stages) == Edges{{0, 2}, {1, 2}});
}

TEST_CASE("the faster partition is better, then the one with less in flight, then with less bytes",
          "[scheduler][planners]") {
  const Partition one{.time = 1, .in_flight = 3, .peak = 5};
  CHECK(better(one, {.time = 2, .in_flight = 1, .peak = 1}));
  CHECK(better(one, {.time = 1, .in_flight = 4, .peak = 1}));
  CHECK(better(one, {.time = 1, .in_flight = 3, .peak = 6}));
  CHECK_FALSE(better(one, one));
}

TEST_CASE("the least work of an operator is that of its cheapest variant",
          "[scheduler][planners]") {
  PartitionProblem problem = towers();
  problem.variants.push_back({.devices = 2, .time = {0.4, 1.5, 1.5, 2, 2.5}});
  CHECK(least_work(problem) == std::vector<double>{0.8, 2, 3, 4, 5});
}

}  // namespace
}  // namespace stagecraft::graphpipe
