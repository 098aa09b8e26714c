#include "stagecraft/scheduler/planners/graphpipe/problem/stage_load.h"

#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::graphpipe {
namespace {

/// Operator 0 feeds 1 and 2. On two devices everything takes half.
PartitionProblem fork() {
  PartitionProblem problem{
      .operators = 3, .edges = {{0, 1}, {0, 2}}, .devices = 2, .fixed = {10, 20, 30}};
  problem.variants = {{.devices = 1, .time = {4, 2, 6}, .send = {1, 0, 0}, .kept = {8, 4, 2}},
                      {.devices = 2, .time = {2, 1, 3}, .send = {1, 0, 0}, .kept = {4, 2, 1}}};
  return problem;
}

TEST_CASE("a stage sends what a consumer outside of it reads", "[scheduler][planners]") {
  const PartitionProblem problem = fork();
  const auto graph = neighbors_of(problem.operators, problem.edges);
  StageLoad load(problem, graph);
  load.add(2);
  load.add(0);
  CHECK(load.time(0) == 6 + 4 + 1);  // 1 is elsewhere
  CHECK(load.time(1) == 3 + 2 + 1);
  CHECK(load.bytes(0, 3) == 40 + 10 * 3);
  StageLoad all(problem, graph);
  all.add(0, 3);
  CHECK(all.operators() == std::vector{2, 1, 0});
  CHECK(all.time(0) == 4 + 2 + 6);
}

TEST_CASE("a stage that has shrunk has its earlier costs to the last bit",
          "[scheduler][planners]") {
  PartitionProblem problem = fork();
  problem.variants[0].time = {0.1, 0.2, 0.3};
  const auto graph = neighbors_of(problem.operators, problem.edges);
  StageLoad load(problem, graph);
  load.add(2);
  const double before = load.time(0);
  load.add(1);
  load.add(0);
  load.shrink(1);
  CHECK(load.time(0) == before);
  CHECK(load.size() == 1);
  load.add(0);
  CHECK(load.time(0) == before + (0.1 + 1.0));  // 1 is outside again
  load.shrink(0);
  CHECK(load.time(0) == 0);
  CHECK(load.bytes(0, 5) == 0);
}

TEST_CASE("a stage is within a limit if one variant is", "[scheduler][planners]") {
  const PartitionProblem problem = fork();
  const auto graph = neighbors_of(problem.operators, problem.edges);
  StageLoad load(problem, graph);
  load.add(2);
  CHECK(load.within(3));
  CHECK_FALSE(load.within(2.9));
}

}  // namespace
}  // namespace stagecraft::graphpipe
