#include "stagecraft/scheduler/planners/request/update_bytes.h"

#include <algorithm>
#include <vector>

#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/pfeife/cut_cost.h"
#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("a rank sums copies from its own gradients and those of the others",
          "[scheduler][planners][memory]") {
  UpdateBytes bytes(3);
  bytes.add_copies(std::vector{0, 2}, 2, 10);
  CHECK(bytes.of(0).held == 5);       // the sum of its part
  CHECK(bytes.of(0).received == 10);  // the other's part of that, and the sum of the other part
  CHECK(bytes.of(1).all() == 0);
  CHECK(bytes.of(2).all() == 15);
  bytes.add_copies(std::vector{1, 1}, 1, 10);  // both copies are on one rank
  CHECK(bytes.of(1).all() == 0);
}

TEST_CASE("sums over copies are under way at once, and then those over ties",
          "[scheduler][planners][memory]") {
  UpdateBytes bytes(2);
  bytes.add_copies(std::vector{0, 1}, 2, 10);
  bytes.add_copies(std::vector{1, 0}, 2, 4);
  CHECK(bytes.of(0).all() == 15 + 6);
  bytes.add_tie(std::vector{0, 1}, 5);
  CHECK(bytes.of(0).all() == 21);  // its parts, the other's, and both gathered are 20
  bytes.add_tie(std::vector{0, 1}, 1);
  CHECK(bytes.of(1).all() == 22);
}

TEST_CASE("a tie gathers as many parts of each rank as the rank with the most has",
          "[scheduler][planners][memory]") {
  UpdateBytes bytes(3);
  bytes.add_tie(std::vector{0, 1, 0}, 10);
  CHECK(bytes.of(0).held == 20 + 40);  // two parts of its own, and four gathered
  CHECK(bytes.of(0).received == 20);
  CHECK(bytes.of(1).all() == bytes.of(0).all());
  bytes.add_tie(std::vector{2, 2}, 10);  // nothing is sent
  CHECK(bytes.of(2).held == 20 + 10);
  CHECK(bytes.of(2).received == 0);
}

/// Returns a request whose operators 0 and 3 use one parameter of 100 bytes.
PlanRequest tied_request() {
  PlanRequest request = test::chain_request({1, 1, 1, 1});
  request.costs.parameters.push_back({"tied", 100, 400});
  for (const std::size_t op : {0, 3}) {
    request.costs.operators[op].parameters.emplace_back("tied");
  }
  return request;
}

TEST_CASE("a plan holds what the sums at the end of a step need", "[scheduler][planners][memory]") {
  Candidate candidate = test::two_stages(2, 4);
  const PlanRequest tied = tied_request();
  const PlanProposal shared = judge(tied, candidate);
  // Each stage has its two parameters and the shared one, which both send, receive and gather.
  for (const double bytes : shared.bytes) {
    CHECK(bytes == 2 * 40 + 400 + 100 * (1 + 2 + 1));
  }
  CHECK(shared.early == std::vector<double>{100, 100});
  // Copies that share have shards of the tie.
  const WorkGraph graph = WorkGraph::of(tied.costs, 1);
  for (const int shards : {1, 2}) {
    UpdateBytes sums(2);
    sums.add_ties(graph,
                  stage_graph_of(graph, candidate.stages),
                  std::vector{0, 1},
                  std::vector<int>(2, shards));
    CHECK(sums.of(0).all() == 100.0 / shards * (1 + 2 + 1));
  }
  // A frozen parameter is not summed.
  PlanRequest frozen = tied;
  frozen.costs.parameters.back().held = 100;
  CHECK(judge(frozen, candidate).bytes[0] == 2 * 40 + 100 + 2 * (2 * 10 + 8));
}

TEST_CASE("searches of cuts count the sums as the judge does", "[scheduler][planners][memory]") {
  const PlanRequest request = tied_request();
  const WorkGraph graph = WorkGraph::of(request.costs, 1);
  const OperatorRow row(graph);
  for (const Schedule& schedule : {chimera(2, 4), gpipe(2, 4).to_list()}) {
    Candidate candidate = test::two_stages(1, 4);
    candidate.schedule = schedule;
    CutCost cost(row, request.costs.links, schedule, 1e9);
    const PlanProposal judged = judge(request, candidate);
    CHECK(cost.peak(std::vector{1}).bytes == *std::ranges::max_element(judged.bytes));
    CHECK(cost.peak(std::vector{1}).bytes > 8 * 40);
  }
}

}  // namespace
}  // namespace stagecraft
