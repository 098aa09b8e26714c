#include "stagecraft/scheduler/planners/least_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/planners/capslog/capslog.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/pfeife/pfeife.h"
#include "stagecraft/scheduler/planners/propose.h"
#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns a request for two towers of so many operators, and a head. The towers' operators
/// alternate in the order of the forward:
///
///     0 - 2 - 4
///               > 6
///     1 - 3 - 5
PlanRequest towers_by_turns(int each = 3) {
  const auto in_towers = static_cast<std::size_t>(2 * each);
  PlanRequest request = test::chain_request(std::vector<double>(in_towers + 1, 1));
  std::vector<OperatorCost>& operators = request.costs.operators;
  for (std::size_t i = 1; i < in_towers; ++i) {
    operators[i].reads.clear();
    operators[i].input = i == 1 ? 8 : 0;
    if (i > 1) {
      operators[i].reads = {{static_cast<int>(i) - 2, 0, 8}};
    }
  }
  operators[in_towers].reads = {{2 * each - 2, 0, 8}, {2 * each - 1, 0, 8}};
  request.devices = 3;
  request.batch = 8;
  return request;
}

/// Returns the least memory of all cuts of the row of seven operators into three stages, run by
/// 1F1B on their graph.
double least_in_a_row(const PlanRequest& request) {
  double least = std::numeric_limits<double>::infinity();
  const WorkGraph graph = WorkGraph::of(request.costs, 1);
  for (int first = 1; first < 6; ++first) {
    for (int second = first + 1; second < 7; ++second) {
      Candidate cut{.planner = "test",
                    .stages = consecutive_stages(std::vector{first, second, 7}),
                    .schedule_name = "dag-1f1b"};
      cut.schedule = one_f_one_b(stage_graph_of(graph, cut.stages), request.batch);
      least = std::min(least, judge(request, cut).most_bytes());
    }
  }
  return least;
}

TEST_CASE("stages beside each other hold less than any in a row", "[scheduler][planners]") {
  PlanRequest request = towers_by_turns();
  request.memory = 100;
  const std::vector<Candidate> found = least_memory_candidates(request);
  REQUIRE(found.size() == 1);
  CHECK(found.front().schedule_name == "dag-1f1b");
  const PlanProposal judged = judge(request, found.front());
  CHECK(judged.most_bytes() < least_in_a_row(request));
  CHECK(judged.graph.depth() == 2);
  std::size_t operators = 0;
  for (const std::vector<int>& stage : found.front().stages) {
    CHECK(std::ranges::is_sorted(stage));
    operators += stage.size();
  }
  CHECK(operators == 7);
  // With exactly this memory, auto finds a plan.
  request.memory = judged.needs();
  CHECK(propose(request, "auto").front().fits);
}

TEST_CASE("on more devices than pfeife takes, auto still looks for the least memory",
          "[scheduler][planners]") {
  PlanRequest request = towers_by_turns(/*each=*/24);
  request.devices = 17;
  request.batch = 24;
  REQUIRE(pfeife_refuses(request));
  request.memory = 1;
  const double least = judge(request, least_memory_candidates(request).front()).needs();
  request.memory = 1e9;
  const double in_a_row = judge(request, capslog_candidates(request).front()).needs();
  REQUIRE(least < in_a_row);
  request.memory = std::floor((least + in_a_row) / 2);
  for (const char* alone : {"capslog", "balance"}) {
    CHECK_THROWS_AS(propose(request, alone), Error);
  }
  CHECK(propose(request, "auto").front().fits);
}

TEST_CASE("every size of microbatch has stages that hold little", "[scheduler][planners]") {
  PlanRequest request = towers_by_turns();
  request.memory = 100;
  request.microbatch_sizes = {1, 2, 4};
  const std::vector<Candidate> found = least_memory_candidates(request);
  REQUIRE(found.size() == 3);
  CHECK(judge(request, found[0]).most_bytes() < judge(request, found[2]).most_bytes());
}

}  // namespace
}  // namespace stagecraft
