#include "stagecraft/scheduler/planners/balance/balance.h"

#include <algorithm>

#include "stagecraft/scheduler/planners/balance/cut_items.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

PlanRequest chain(const std::vector<double>& times, int devices, int batch = 8) {
  PlanRequest request{.costs = {}, .devices = devices, .batch = batch};
  for (std::size_t i = 0; i < times.size(); ++i) {
    const int op = static_cast<int>(i);
    request.costs.operators.push_back({.id = op,
                                       .forward = times[i],
                                       .backward_input = times[i],
                                       .backward_weight = times[i],
                                       .kept = 10});
    if (op > 0) {
      request.costs.operators.back().reads = {{op - 1, 0, 0}};
    }
  }
  return request;
}

Timeline timeline_of(const PlanRequest& request, const Candidate& candidate) {
  const WorkGraph graph = WorkGraph::of(request.costs, candidate.microbatch_size);
  const StageGraph stages = stage_graph_of(graph, candidate.stages);
  CHECK(validate(
            candidate.schedule, stages, {.microbatches = request.batch / candidate.microbatch_size})
            .empty());
  return simulate(candidate.schedule, stages, costs_of(request.costs, graph, candidate.stages));
}

bool is_among(const std::vector<Candidate>& found, const std::string& name) {
  return std::ranges::find(found, name, &Candidate::schedule_name) != found.end();
}

TEST_CASE("operators are cut by their time, and the best schedule comes first",
          "[scheduler][planners]") {
  const PlanRequest request = chain({3, 1, 2, 5, 1, 2, 4, 1}, 2);
  const std::vector<Candidate> found = balance_candidates(request);
  double before = 0;
  for (const Candidate& candidate : found) {
    CAPTURE(candidate.schedule_name);
    const double seconds = timeline_of(request, candidate).makespan;
    CHECK(seconds >= before);
    before = seconds;
  }
  const auto plain = std::ranges::find(found, "1f1b", &Candidate::schedule_name);
  REQUIRE(plain != found.end());
  // 3 1 2 5 | 1 2 4 1 gives 11 and 8; 3 1 2 | 5 1 2 4 1 gives 6 and 13.
  CHECK(plain->stages == StageOperators{{0, 1, 2, 3}, {4, 5, 6, 7}});
  for (const char* name : {"gpipe", "zb-h1", "zb-v", "interleaved chunks=2", "kfkb k=2"}) {
    CHECK(is_among(found, name));
  }
  CHECK_FALSE(is_among(found, "pfeife"));
  CHECK_FALSE(is_among(found, "chimera"));
  CHECK(is_among(found, "interleaved chunks=4"));
}

TEST_CASE("schedules that need more stages than there are operators are left out",
          "[scheduler][planners]") {
  const std::vector<Candidate> found = balance_candidates(chain({1, 1, 1}, 2));
  CHECK(is_among(found, "1f1b"));
  CHECK_FALSE(is_among(found, "interleaved chunks=2"));
  CHECK_THAT(balance_refuses(chain({1, 1}, 3)).value_or(""),
             ContainsSubstring("found 2 that can be separated, for 3 devices"));
}

TEST_CASE("builders that do not take so many microbatches are passed over",
          "[scheduler][planners]") {
  PlanRequest request = chain({1, 1, 1, 1, 1, 1, 1, 1}, 4, 6);
  const std::vector<Candidate> found = balance_candidates(request);
  CHECK(is_among(found, "1f1b"));
  CHECK_FALSE(is_among(found, "hanayo waves=1"));  // it needs M divisible by 4
  request.builder = "hanayo";
  CHECK_THAT(refusal([&] { (void)balance_candidates(request); }, Errc::ScheduleParameter),
             ContainsSubstring("hanayo needs"));
  request.builder = "chimera";
  CHECK_THAT(balance_refuses(request).value_or(""), ContainsSubstring("does not cut for chimera"));
}

TEST_CASE("where memory is short, stages are cut under a cap", "[scheduler][planners]") {
  PlanRequest request = chain({1, 1, 1, 1, 2, 2}, 2);
  request.builder = "1f1b";
  const std::vector<Candidate> free = balance_candidates(request);
  CHECK(free.front().stages == StageOperators{{0, 1, 2, 3}, {4, 5}});
  // Two microbatches hold 4 x 10 bytes each on the first device.
  request.memory = 79;
  const std::vector<Candidate> capped = balance_candidates(request);
  CHECK(capped.front().stages == StageOperators{{0, 1, 2}, {3, 4, 5}});
  request.memory = 29;
  CHECK_THAT(refusal([&] { (void)balance_candidates(request); }, Errc::PlanInfeasible),
             ContainsSubstring("of cuts into stages of nearly the same time, the one that holds "
                               "least (1f1b with microbatches of 1) needs 51 B more") &&
                 ContainsSubstring("holds 80 B, and may hold 29 B") &&
                 ContainsSubstring("ask capslog"));
}

TEST_CASE("branches take the builders of stage graphs", "[scheduler][planners]") {
  PlanRequest request = chain({1, 1, 1, 1}, 4);
  request.costs.operators[2].reads = {{0, 0, 0}};
  request.costs.operators[3].reads = {{1, 0, 0}, {2, 0, 0}};
  const std::vector<Candidate> found = balance_candidates(request);
  CHECK(is_among(found, "dag-1f1b"));
  CHECK_FALSE(is_among(found, "1f1b"));
  for (const Candidate& candidate : found) {
    (void)timeline_of(request, candidate);  // throws if it is not valid for the graph
  }
  request.builder = "dag-1f1b";
  CHECK(balance_candidates(request).size() == 1);
}

TEST_CASE("a schedule that is given is cut for", "[scheduler][planners]") {
  PlanRequest request = chain({1, 2, 1, 2, 1, 1}, 2, 2);
  request.schedule = Schedule::parse("0F0 0F1 . 0B0 . 0B1\n. 1F0 1B0 1F1 1B1 .");
  CHECK_FALSE(balance_refuses(request).has_value());
  const std::vector<Candidate> found = balance_candidates(request);
  REQUIRE(found.size() == 1);
  CHECK(found.front().stages == StageOperators{{0, 1, 2}, {3, 4, 5}});
  CHECK(found.front().schedule == *request.schedule);
  request.batch = 3;
  CHECK_THAT(refusal([&] { (void)balance_candidates(request); }),
             ContainsSubstring("cannot run 3 microbatches"));
  request.devices = 3;
  CHECK_THAT(balance_refuses(request).value_or(""), ContainsSubstring("2 stages on 2 rows"));
}

TEST_CASE("a result crosses every place between its producer and its last reader, once",
          "[scheduler][planners]") {
  PlanRequest request = chain({1, 1, 1, 1}, 2);
  for (OperatorCost& op : request.costs.operators) {
    op.reads.clear();
  }
  request.costs.operators[1].reads = {{0, 0, 4}};
  request.costs.operators[3].reads = {{0, 0, 4}, {0, 1, 2}, {2, 0, 1}};
  const std::vector<CutItem> items = cut_items(WorkGraph::of(request.costs, 1), 3);
  CHECK(items[0].crossing == 6);
  CHECK(items[1].crossing == 6);
  CHECK(items[2].crossing == 7);
  CHECK(items[3].crossing == 0);
  CHECK(items[2].bytes == 30);
  CHECK(items[2].time == 3);
}

}  // namespace
}  // namespace stagecraft
