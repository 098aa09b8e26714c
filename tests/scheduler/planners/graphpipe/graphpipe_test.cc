#include "stagecraft/scheduler/planners/graphpipe/graphpipe.h"

#include <algorithm>

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

OperatorCost operator_of(int id, double forward, std::vector<int> reads) {
  OperatorCost made{.id = id,
                    .forward = forward,
                    .backward_input = forward,
                    .backward_weight = forward,
                    .kept = 10};
  for (const int producer : reads) {
    made.reads.push_back({producer, 0, 4});
  }
  return made;
}

/// Returns a request for two towers of two operators and a head.
PlanRequest towers(int devices, int batch) {
  PlanRequest request;
  request.costs.operators = {operator_of(0, 2, {}),
                             operator_of(1, 2, {0}),
                             operator_of(2, 2, {}),
                             operator_of(3, 2, {2}),
                             operator_of(4, 1, {1, 3})};
  request.costs.parameters = {{"w", 100, 400}};
  request.costs.operators[0].parameters = {"w"};
  request.devices = devices;
  request.batch = batch;
  return request;
}

void check_runs(const PlanRequest& request, const Candidate& candidate) {
  const WorkGraph graph = WorkGraph::of(request.costs, candidate.microbatch_size);
  const StageGraph stages = stage_graph_of(graph, candidate.stages);
  CHECK(validate(candidate.schedule, stages).empty());
  CHECK(simulate(candidate.schedule, stages, costs_of(request.costs, graph, candidate.stages))
            .makespan > 0);
  std::size_t operators = 0;
  for (const std::vector<int>& stage : candidate.stages) {
    operators += stage.size();
    CHECK(std::ranges::is_sorted(stage));
  }
  CHECK(operators == request.costs.operators.size());
}

TEST_CASE("two towers run beside each other", "[scheduler][planners]") {
  const PlanRequest request = towers(3, 8);
  const std::vector<Candidate> found = graphpipe_candidates(request, {.copies = false});
  REQUIRE(found.size() == 1);
  CHECK(found[0].schedule_name == "dag-1f1b");
  CHECK(found[0].stage_sizes.empty());
  check_runs(request, found[0]);
  const WorkGraph graph = WorkGraph::of(request.costs, 1);
  CHECK(stage_graph_of(graph, found[0].stages).depth() < 3);
}

TEST_CASE("every size of microbatch is a candidate, and copies of stages where they are faster",
          "[scheduler][planners]") {
  PlanRequest request = towers(2, 8);
  request.microbatch_sizes = {1, 2};
  const auto has_copies = [](const Candidate& candidate) {
    return !Layout::of(candidate.schedule).is_single();
  };
  CHECK(std::ranges::none_of(graphpipe_candidates(request, {.copies = false}), has_copies));
  const std::vector<Candidate> found = graphpipe_candidates(request);
  const auto with_copies = std::ranges::find_if(found, has_copies);
  REQUIRE(with_copies != found.end());
  // Each of two devices takes one of the two samples.
  CHECK(with_copies->microbatch_size == 1);
  CHECK(with_copies->schedule.microbatches() == 4);
  CHECK(with_copies->schedule_name == "1f1b copies=2");
  CHECK(with_copies->schedule.headers().places ==
        std::vector<std::vector<Rank>>{{Rank(0), Rank(1)}});
  CHECK(with_copies->stages == StageOperators{{0, 1, 2, 3, 4}});
  CHECK(judge(request, *with_copies).microbatches == 8);
  request.microbatch_sizes = {2};  // a copy would take one sample
  CHECK(std::ranges::none_of(graphpipe_candidates(request), has_copies));
  request.microbatch_sizes = {1, 2};
  for (const Candidate& candidate : found) {
    check_runs(request, candidate);
  }
}

TEST_CASE("stages have sizes of their own only where they are asked for", "[scheduler][planners]") {
  PlanRequest request = towers(3, 8);
  request.microbatch_sizes = {1, 2};
  // The first tower takes as long on two samples as on one.
  request.costs.operators_at[2] = request.costs.operators;
  for (int op = 2; op < 5; ++op) {
    OperatorCost& cost = request.costs.operators_at[2][static_cast<std::size_t>(op)];
    cost.forward *= 3;
    cost.backward_input *= 3;
    cost.backward_weight *= 3;
  }
  const auto differ = [](const Candidate& candidate) { return !candidate.stage_sizes.empty(); };
  CHECK(std::ranges::none_of(graphpipe_candidates(request), differ));
  const std::vector<Candidate> found =
      graphpipe_candidates(request, {.copies = false, .stage_sizes = true});
  const auto candidate = std::ranges::find_if(found, differ);
  REQUIRE(candidate != found.end());
  CHECK(candidate->stage_sizes.size() == candidate->stages.size());
  const PlanProposal judged = judge(request, *candidate);
  CHECK(judged.graph.microbatch_sizes().size() == candidate->stages.size());
  CHECK(judged.step >= judged.bound);
}

TEST_CASE("what stages receive counts as memory too", "[scheduler][planners]") {
  PlanRequest request = towers(3, 8);
  request.memory = 434;  // 400, 10 for each operator in flight, and 4 for each received value
  const std::vector<Candidate> found = graphpipe_candidates(request, {.copies = false});
  REQUIRE(found.size() == 1);
  const WorkGraph graph = WorkGraph::of(request.costs, 1);
  const StageGraph stages = stage_graph_of(graph, found[0].stages);
  const Timeline timeline =
      simulate(found[0].schedule, stages, costs_of(request.costs, graph, found[0].stages));
  for (const RowTimeline& row : timeline.rows) {
    CHECK(row.peak_bytes <= request.memory);
  }
}

TEST_CASE("memory that nothing fits is refused with what is lacking", "[scheduler][planners]") {
  PlanRequest request = towers(2, 4);
  request.memory = 401;
  const std::string text =
      refusal([&] { (void)graphpipe_candidates(request); }, Errc::PlanInfeasible);
  CHECK_THAT(text, ContainsSubstring("2 devices of 401 B") && ContainsSubstring("more"));
}

TEST_CASE("other schedules than 1F1B are refused", "[scheduler][planners]") {
  PlanRequest request = towers(2, 4);
  CHECK(!graphpipe_refuses(request));
  request.builder = "dag-1f1b";
  CHECK(!graphpipe_refuses(request));
  request.builder = "gpipe";
  CHECK_THAT(graphpipe_refuses(request).value(), ContainsSubstring("found gpipe"));
  request.builder.reset();
  request.schedule = Schedule::parse("0F0 0B0");
  CHECK_THAT(graphpipe_refuses(request).value(), ContainsSubstring("leave the schedule out"));
}

}  // namespace
}  // namespace stagecraft
