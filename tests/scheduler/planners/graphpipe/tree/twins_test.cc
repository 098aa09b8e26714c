#include "stagecraft/scheduler/planners/graphpipe/tree/twins.h"

#include <initializer_list>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::graphpipe {
namespace {

/// An operator, branches 1-2, 3-4 and 5-6, and an operator that joins them. The last branch takes
/// longer than the others.
PartitionProblem three_like_branches() {
  PartitionProblem problem{
      .operators = 8,
      .edges = {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {0, 5}, {5, 6}, {2, 7}, {4, 7}, {6, 7}},
      .devices = 2,
      .fixed = {},
      .variants = {}};
  problem.variants.push_back({.time = {1, 2, 3, 2, 3, 2, 4, 1}, .send = {}, .kept = {}});
  return problem;
}

OperatorSet set_of(std::initializer_list<int> operators) {
  OperatorSet set;
  for (const int op : operators) {
    set[at(op)] = true;
  }
  return set;
}

std::vector<int> before_all(const Twins& twins, int operators) {
  std::vector<int> before;
  for (int op = 0; op < operators; ++op) {
    before.push_back(twins.before(op));
  }
  return before;
}

TEST_CASE("branches that cost the same are twins, another is not", "[scheduler][planners]") {
  const Twins twins = Twins::of(three_like_branches());
  CHECK(before_all(twins, 8) == std::vector{-1, 3, 4, -1, -1, -1, -1, -1});
  CHECK(twins.order() == std::vector{7, 6, 5, 4, 3, 2, 1, 0});
}

TEST_CASE("branches with other bytes, or other edges, are no twins", "[scheduler][planners]") {
  PartitionProblem problem = three_like_branches();
  SECTION("bytes") {
    problem.fixed = {0, 0, 8, 0, 9, 0, 0, 0};
  }
  SECTION("edges") {
    problem.edges.push_back({0, 2});  // beside the path, so the tree is the same
  }
  CHECK(before_all(Twins::of(problem), 8) == std::vector<int>(8, -1));
}

TEST_CASE("a downset is sorted so that the first twin holds the most", "[scheduler][planners]") {
  const Twins twins = Twins::of(three_like_branches());
  CHECK(twins.equal_before(1, set_of({7})));
  CHECK(twins.equal_before(2, set_of({7, 2, 4})));
  CHECK_FALSE(twins.equal_before(2, set_of({7, 4})));
  const OperatorSet sorted = set_of({7, 6, 4, 3, 2});
  CHECK(twins.sorted(sorted) == sorted);
  CHECK(twins.places(sorted) == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
  const OperatorSet exchanged = set_of({7, 6, 4, 2, 1});
  CHECK(twins.sorted(exchanged) == sorted);
  CHECK(twins.places(exchanged) == std::vector{0, 3, 4, 1, 2, 5, 6, 7});
}

TEST_CASE("a graph without a tree has no twins", "[scheduler][planners]") {
  PartitionProblem problem{
      .operators = 4, .edges = {{0, 2}, {0, 3}, {1, 3}}, .devices = 2, .fixed = {}, .variants = {}};
  problem.variants.push_back({.time = {1, 1, 1, 1}, .send = {}, .kept = {}});
  const Twins twins = Twins::of(problem);
  CHECK(before_all(twins, 4) == std::vector<int>(4, -1));
  CHECK(twins.order() == std::vector{3, 2, 1, 0});
  CHECK(twins.sorted(set_of({3, 1})) == set_of({3, 1}));
}

}  // namespace
}  // namespace stagecraft::graphpipe
