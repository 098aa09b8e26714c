#include "stagecraft/scheduler/planners/capslog/capslog.h"

#include "stagecraft/scheduler/planners/capslog/operator_memory.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Each operator has a parameter of its own and reads the one before; the value it reads has no
/// bytes.
PlanRequest even_chain(int operators, int devices) {
  PlanRequest request{.costs = {}, .devices = devices, .batch = 8};
  for (int op = 0; op < operators; ++op) {
    const std::string name = "p" + std::to_string(op);
    request.costs.parameters.push_back({name, 10, 40});
    request.costs.operators.push_back({.id = op,
                                       .forward = 1,
                                       .backward_input = 1,
                                       .backward_weight = 1,
                                       .kept = 20,
                                       .transient = 7.0 * (op % 5),
                                       .parameters = {name}});
    if (op > 0) {
      request.costs.operators.back().reads = {{op - 1, 0, 0}};
    }
  }
  return request;
}

Timeline capslog_timeline(const PlanRequest& request, const Candidate& candidate) {
  const WorkGraph graph = WorkGraph::of(request.costs, candidate.microbatch_size);
  const StageGraph stages = stage_graph_of(graph, candidate.stages);
  CHECK(validate(candidate.schedule, stages).empty());
  return simulate(candidate.schedule, stages, costs_of(request.costs, graph, candidate.stages));
}

double peak_of(const PlanRequest& request, const Candidate& candidate) {
  double peak = 0;
  for (const RowTimeline& row : capslog_timeline(request, candidate).rows) {
    peak = std::max(peak, row.peak_bytes);
  }
  return peak;
}

TEST_CASE("stages of 1F1B that keep more microbatches get fewer operators",
          "[scheduler][planners]") {
  const PlanRequest request = even_chain(24, 4);
  const std::vector<Candidate> found = capslog_candidates(request);
  REQUIRE(found.size() == 2);
  CHECK(found[0].schedule_name == "1f1b");
  CHECK(found[1].schedule_name == "gpipe");
  CHECK(found[0].stages.front().size() < found[0].stages.back().size());
  CHECK(found[1].stages.front().size() == found[1].stages.back().size());
  // The fullest device of 1F1B, with 6 operators on each, holds more than 6 x (40 + 4 x 20).
  CHECK(peak_of(request, found[0]) < 6 * (40 + 4 * 20));
}

TEST_CASE("what is promised is what the simulator holds", "[scheduler][planners]") {
  PlanRequest request = even_chain(24, 4);
  request.microbatch_sizes = {1, 2, 4};
  const std::vector<Candidate> found = capslog_candidates(request);
  CHECK(found.size() == 6);
  double before = 0;
  for (const Candidate& candidate : found) {
    const double peak = peak_of(request, candidate);
    CAPTURE(candidate.schedule_name, candidate.microbatch_size);
    CHECK(peak >= before);  // the smallest first, by the planner's figures
    before = peak;
    // Exactly this much memory is enough; one byte less is too little for the best plan.
    PlanRequest tight = request;
    tight.memory = peak;
    CHECK_FALSE(capslog_candidates(tight).empty());
  }
  request.memory = peak_of(request, found.front()) - 1;
  CHECK_THAT(refusal([&] { (void)capslog_candidates(request); }, Errc::PlanInfeasible),
             ContainsSubstring("needs 1 B more"));
}

TEST_CASE("what a stage receives is held once for each microbatch, until its backward",
          "[scheduler][planners]") {
  PlanRequest request = even_chain(3, 1);
  for (OperatorCost& op : request.costs.operators) {
    op.kept = 0;
    op.transient = 0;
    op.parameters.clear();
  }
  request.costs.operators[1].reads = {{0, 0, 100}};
  request.costs.operators[2].reads = {{0, 0, 100}, {0, 1, 30}, {1, 0, 5}};
  request.costs.operators[2].input = 3;
  const WorkGraph graph = WorkGraph::of(request.costs, 1);
  const OperatorMemory memory(graph, {1, 4});
  CHECK_FALSE(memory.filling_is_exact());
  auto both = memory.stage_at(1, 1);
  CHECK(both.append(1) == 4 * 100);
  CHECK(both.append(2) == 4 * (100 + 30 + 3));
  auto last = memory.stage_at(0, 2);
  CHECK(last.append(2) == 100 + 30 + 5 + 3);
}

TEST_CASE("branches make a stage graph, and its schedule follows it", "[scheduler][planners]") {
  PlanRequest request = even_chain(3, 3);
  request.costs.operators[1].reads.clear();
  request.costs.operators[2].reads = {{0, 0, 0}, {1, 0, 0}};
  const std::vector<Candidate> found = capslog_candidates(request);
  REQUIRE(found.size() == 2);
  CHECK(found[0].schedule_name == "dag-1f1b");
  // The two branches run at the same time: two steps deep, not three.
  CHECK(capslog_timeline(request, found[0]).makespan == 3 * (8 + 1));
}

TEST_CASE("the schedule may be given, and others are refused", "[scheduler][planners]") {
  PlanRequest request = even_chain(8, 4);
  CHECK_FALSE(capslog_refuses(request).has_value());
  request.builder = "gpipe";
  REQUIRE(capslog_candidates(request).size() == 1);
  CHECK(capslog_candidates(request).front().schedule_name == "gpipe");
  request.builder = "zb-v";
  CHECK_THAT(capslog_refuses(request).value_or(""), ContainsSubstring("1f1b and gpipe only"));
  request.builder.reset();
  request.schedule = Schedule::parse("0F0 0B0");
  CHECK(capslog_refuses(request).has_value());
  CHECK_THAT(capslog_refuses(even_chain(3, 4)).value_or(""),
             ContainsSubstring("found 3 that can be separated, for 4 devices"));
}

}  // namespace
}  // namespace stagecraft
