#include "stagecraft/scheduler/planners/pfeife/pfeife.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/pfeife.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/planners/pfeife/cut_cost.h"
#include "stagecraft/scheduler/planners/pfeife/given_schedule.h"
#include "stagecraft/scheduler/planners/pfeife/pfeife_sets.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/scheduler/planners/chain_costs.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

const std::vector<double> kUneven{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};

double simulated(const PlanRequest& request, const Candidate& candidate) {
  const WorkGraph graph = WorkGraph::of(request.costs, candidate.microbatch_size);
  const StageGraph stages = stage_graph_of(graph, candidate.stages);
  CHECK(validate(candidate.schedule.to_list(), stages).empty());
  return simulate(candidate.schedule, stages, costs_of(request.costs, graph, candidate.stages))
      .makespan;
}

std::vector<std::string> names(const std::vector<PfeifeOptions>& sets) {
  std::vector<std::string> made;
  std::ranges::transform(sets, std::back_inserter(made), schedule_name);
  return made;
}

TEST_CASE("sets of parameters: blocks that divide the microbatches, extras down the rows",
          "[scheduler][planners]") {
  const PfeifeWorkload workload{.operators = 12, .devices = 2, .microbatches = 4, .forward = 1};
  CHECK(names(pfeife_sets(workload)) ==
        std::vector<std::string>{"pfeife loops=1 block=4 extra=0,0",
                                 "pfeife loops=1 block=4 extra=1,0",
                                 "pfeife loops=2 block=2 extra=0,0",
                                 "pfeife loops=2 block=2 extra=1,0",
                                 "pfeife loops=2 block=4 extra=0,0",
                                 "pfeife loops=2 block=4 extra=1,0",
                                 "pfeife loops=3 block=2 extra=0,0",
                                 "pfeife loops=3 block=2 extra=1,0",
                                 "pfeife loops=3 block=4 extra=0,0",
                                 "pfeife loops=3 block=4 extra=1,0"});
}

TEST_CASE("loops need operators, work enough, and as many microbatches as devices",
          "[scheduler][planners]") {
  const auto loops = [](const PfeifeWorkload& workload, const PfeifeLimits& limits = {}) {
    return pfeife_sets(workload, limits).back().loops;
  };
  CHECK(loops({.operators = 10, .devices = 2, .microbatches = 4, .forward = 1}) == 3);
  CHECK(loops({.operators = 9, .devices = 2, .microbatches = 4, .forward = 1}) == 2);
  CHECK(loops({.operators = 3, .devices = 2, .microbatches = 4, .forward = 1}) == 1);
  CHECK(loops({.operators = 10, .devices = 2, .microbatches = 4, .forward = 0.03}) == 2);
  CHECK(loops({.operators = 10, .devices = 2, .microbatches = 4, .forward = 0.03},
              {.least_forward = 1e-3}) == 3);
  CHECK(loops({.operators = 50, .devices = 4, .microbatches = 2, .forward = 1}) == 1);
}

TEST_CASE("sets that make one schedule are tried once", "[scheduler][planners]") {
  // With two microbatches, every row warms up with at most both.
  const auto sets = pfeife_sets({.operators = 50, .devices = 4, .microbatches = 2, .forward = 1});
  std::set<std::string> schedules;
  for (const PfeifeOptions& set : sets) {
    CHECK(schedules.insert(to_string(pfeife(4, 2, set))).second);
  }
}

TEST_CASE("the best cut and schedule come first, as long as simulated", "[scheduler][planners]") {
  const PlanRequest request{
      .costs = chain_costs(kUneven, 0), .devices = 2, .batch = 4, .microbatch_sizes = {1}};
  const std::vector<Candidate> found = pfeife_candidates(request);
  REQUIRE(found.size() > 2);
  CHECK(simulated(request, found.front()) == 324);
  CHECK(found.front().schedule_name == "pfeife loops=2 block=4 extra=1,0");
  CHECK(found.front().stages == StageOperators{{0, 1}, {2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11}});
  CHECK(found.front().planner == "pfeife");
  CHECK(std::ranges::is_sorted(
      found, {}, [&](const Candidate& candidate) { return simulated(request, candidate); }));
}

TEST_CASE("the size of a microbatch is chosen too", "[scheduler][planners]") {
  PlanRequest request{
      .costs = chain_costs(kUneven, 0), .devices = 2, .batch = 8, .microbatch_sizes = {1, 2, 8}};
  const std::vector<Candidate> found = pfeife_candidates(request);
  CHECK(found.front().microbatch_size == 1);
  CHECK(std::ranges::any_of(found, [](const Candidate& c) { return c.microbatch_size == 8; }));
  // The measured times of eight samples are hardly longer than those of one.
  request.costs.operators_at[8] = request.costs.operators;
  CHECK(pfeife_candidates(request).front().microbatch_size == 8);
}

TEST_CASE("what fits the memory, or what is lacking and where", "[scheduler][planners]") {
  PlanRequest request{
      .costs = chain_costs(kUneven, 0), .devices = 2, .batch = 4, .microbatch_sizes = {1}};
  for (OperatorCost& op : request.costs.operators) {
    op.kept = 10;
  }
  // One loop without extras keeps two microbatches of the first stage, or one of the second.
  request.memory = 80;
  for (const Candidate& candidate : pfeife_candidates(request)) {
    const WorkGraph graph = WorkGraph::of(request.costs, 1);
    const Costs costs = costs_of(request.costs, graph, candidate.stages);
    for (const RowTimeline& row :
         simulate(candidate.schedule, candidate.schedule.stage_graph(), costs).rows) {
      CHECK(row.peak_bytes <= 80);
    }
  }
  request.memory = 79;
  CHECK_THAT(refusal([&] { (void)pfeife_candidates(request); }, Errc::PlanInfeasible),
             ContainsSubstring("holds 80 B, 1 B more than the 79 B"));
}

TEST_CASE("requests of a size beyond pfeife's are refused with what takes them",
          "[scheduler][planners]") {
  PlanRequest request{.costs = chain_costs({1, 1, 1}), .devices = 3};
  CHECK_FALSE(pfeife_refuses(request));
  request.devices = 4;
  CHECK_THAT(pfeife_refuses(request).value(),
             ContainsSubstring("found 3 that can be separated, for 4 devices"));
  request.costs = chain_costs(std::vector<double>(100, 1));
  request.devices = 64;
  CHECK_THAT(pfeife_refuses(request).value(), ContainsSubstring("graphpipe"));
}

TEST_CASE("the best cut for a builder's schedule, whatever its rows and backwards",
          "[scheduler][planners]") {
  PlanRequest request{
      .costs = chain_costs(kUneven, 0), .devices = 2, .batch = 4, .microbatch_sizes = {1}};
  const auto shortest = [&](const char* name) {
    request.builder = name;
    const Candidate best = best_cut_for_schedule(request).front();
    CHECK_THAT(best.schedule_name, StartsWith(name));
    return std::pair(best.stages, simulated(request, best));
  };
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "zb-v", "interleaved", "hanayo", "dag-1f1b"}) {
    CAPTURE(name);
    const auto [stages, time] = shortest(name);
    // Moving one place of the cut makes no better cut.
    for (std::size_t s = 1; s < stages.size(); ++s) {
      Candidate moved = best_cut_for_schedule(request).front();
      if (moved.stages[s].size() > 1) {
        moved.stages[s - 1].push_back(moved.stages[s].front());
        moved.stages[s].erase(moved.stages[s].begin());
        CHECK(simulated(request, moved) >= time);
      }
    }
  }
  CHECK(shortest("zb-h1").second < shortest("1f1b").second);
}

TEST_CASE("a builder that leaves its chunks open is cut for with several, each with its best cut",
          "[scheduler][planners]") {
  PlanRequest request{
      .costs = chain_costs(kUneven, 0), .devices = 2, .batch = 4, .microbatch_sizes = {1}};
  for (const char* name : {"interleaved", "looped-bfs", "interleaved-zb"}) {
    CAPTURE(name);
    request.builder = name;
    const std::vector<Candidate> found = best_cut_for_schedule(request);
    for (const int chunks : {1, 2, 4}) {
      CAPTURE(chunks);
      const auto one = std::ranges::find(
          found, fmt::format("{} chunks={}", name, chunks), &Candidate::schedule_name);
      REQUIRE(one != found.end());
      CHECK(std::ssize(one->stages) == 2 * chunks);
      if (chunks == 1) {
        for (int first = 1; first < std::ssize(request.costs.operators); ++first) {
          Candidate other = *one;
          other.stages = consecutive_stages(
              std::vector{first, static_cast<int>(request.costs.operators.size())});
          CHECK(simulated(request, other) >= simulated(request, *one));
        }
      }
    }
  }
}

TEST_CASE("a cut is sought for halves and tasks that take as long as they do on the device",
          "[scheduler][planners]") {
  PlanRequest request{
      .costs = chain_costs(kUneven, 0), .devices = 2, .batch = 4, .microbatch_sizes = {1}};
  request.costs.device.split = 1.5;
  request.costs.device.task = 3;
  request.builder = "zb-h1";
  const Candidate best = best_cut_for_schedule(request).front();
  const WorkGraph graph = WorkGraph::of(request.costs, 1);
  const OperatorRow row(graph);
  CutCost cost(row,
               request.costs.links,
               best.schedule,
               std::numeric_limits<double>::infinity(),
               request.costs.device);
  for (int first = 1; first < graph.size(); ++first) {
    const std::vector<int> cuts{first};
    Candidate other = best;
    other.stages = stages_of_cuts(cuts, graph.size());
    CHECK(cost.step_time(cuts) == Catch::Approx(simulated(request, other)));
    CHECK(cost.bound(cuts) <= cost.step_time(cuts) * (1 + 1e-12));
    CHECK(simulated(request, other) >= simulated(request, best));
  }
}

TEST_CASE("the best cut for a schedule that is given as it is", "[scheduler][planners]") {
  PlanRequest request{
      .costs = chain_costs(std::vector<double>(15, 1), 0), .devices = 3, .batch = 8};
  request.schedule = pfeife(3, 4, {.extra = {1, 1, 0}});
  const std::vector<Candidate> found = best_cut_for_schedule(request);
  REQUIRE(found.size() == 1);
  CHECK(found.front().microbatch_size == 2);
  CHECK(found.front().stages[1] == std::vector{6, 7, 8, 9, 10});
  CHECK(simulated(request, found.front()) == 2 * 84);
  CHECK(pfeife_candidates(request).front().stages == found.front().stages);
}

TEST_CASE("a given schedule that does not suit the request is refused", "[scheduler][planners]") {
  PlanRequest request{.costs = chain_costs({1, 1, 1}), .devices = 3, .batch = 4};
  const auto text = [&] { return refusal([&] { (void)best_cut_for_schedule(request); }); };
  request.schedule = gpipe(2, 4);
  CHECK_THAT(text(), ContainsSubstring("runs on 2 devices"));
  request.schedule = gpipe(3, 3);
  CHECK_THAT(text(), ContainsSubstring("3 microbatches, which do not divide a batch of 4"));
  request.schedule = std::nullopt;
  request.builder = "zb-v";
  CHECK_THAT(text(), ContainsSubstring("6 stages and the model 3 operators"));
  request.builder = "no-such";
  CHECK_THAT(text(), ContainsSubstring("no schedule is called"));
}

TEST_CASE("a builder that looks at costs is asked for those of the cut", "[scheduler][planners]") {
  PlanRequest request{.costs = chain_costs({3, 1, 4, 1, 5, 9, 2, 6}), .devices = 4, .batch = 8};
  request.costs.links.usual.latency = 2;
  request.builder = "zb-auto";
  const std::vector<Candidate> found = best_cut_for_schedule(request);
  const double best = simulated(request, found.front());
  for (const Candidate& one : found) {
    CHECK(simulated(request, one) >= best);
  }
  request.builder.reset();
  // The schedule is the one made for equal stages.
  request.schedule = build_schedule("zb-auto", {.devices = 4, .microbatches = 8});
  CHECK(best <= simulated(request, best_cut_for_schedule(request).front()));
}

}  // namespace
}  // namespace stagecraft
