#include "stagecraft/scheduler/planners/pfeife/given_schedule.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/planners/pfeife/cut_candidates.h"
#include "stagecraft/scheduler/planners/pfeife/cut_search.h"
#include "stagecraft/scheduler/registry.h"

namespace stagecraft {
namespace {

/// A schedule and the samples of its microbatches.
struct Given {
  int size = 1;
  Schedule schedule;
  std::string name;
};

/// `costs`: of the stages, for a builder that looks at them; absent: alike.
Schedule built(const std::string& name,
               int devices,
               int microbatches,
               std::optional<Costs> costs = std::nullopt) {
  BuildRequest request{.microbatches = microbatches, .costs = std::move(costs)};
  if (find_builder(name).takes_graph) {
    request.graph = StageGraph::chain(devices);
  } else {
    request.devices = devices;
  }
  return build_schedule(name, request);
}

/// What the builder makes for every size that it takes.
std::vector<Given> built_for_sizes(const PlanRequest& request) {
  std::vector<Given> made;
  std::optional<Error> refused;
  for (const int size : request.sizes()) {
    try {
      made.push_back(
          {size, built(*request.builder, request.devices, request.batch / size), *request.builder});
    } catch (const Error& error) {
      refused = refused ? refused : error;
    }
  }
  if (made.empty() && refused) {
    throw Error(*refused);
  }
  return made;
}

Given as_given(const PlanRequest& request) {
  const Schedule& schedule = *request.schedule;
  const int microbatches = schedule.microbatches();
  const int devices = Layout::of(schedule).ranks();
  if (devices != request.devices) {
    throw Error(Errc::UsageArgument,
                fmt::format("the schedule runs on {} devices, asked for are {}; plan for {}",
                            devices,
                            request.devices,
                            devices));
  }
  if (microbatches < 1 || request.batch % microbatches != 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("the schedule has {} microbatches, which do not divide a batch of {}; "
                            "give a batch that is a multiple",
                            microbatches,
                            request.batch));
  }
  if (!schedule.stage_graph().microbatch_sizes().empty()) {
    throw Error(Errc::UsageArgument,
                "the schedule has stages with microbatches of several sizes; give one whose stages "
                "take the same, or leave it out and ask graphpipe with --stage-sizes");
  }
  return {request.batch / microbatches, schedule, "as given"};
}

/// Cut and schedule by turns, each for the other, while that makes the step shorter: for a builder
/// that arranges its schedule for the costs of the stages.
void add_by_turns(const PlanRequest& request,
                  const OperatorRow& row,
                  const Given& first,
                  CutCandidates& candidates) {
  constexpr int kMostTurns = 8;
  Given given = first;
  CutSearchOptions options;
  std::optional<CutScore> best;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    CutCost cost(row, request.costs.links, given.schedule, request.memory);
    const ScoredCut found = find_cut(cost, options);
    if (best && !(found.score < *best)) {
      return;
    }
    candidates.add(cost, found, given.name);
    best = found.score;
    options.starts = {found.cuts};
    const StageOperators stages = stages_of_cuts(found.cuts, row.size());
    given.schedule = built(given.name,
                           request.devices,
                           request.batch / given.size,
                           costs_of(request.costs, row.graph(), stages));
  }
}

}  // namespace

std::vector<Candidate> best_cut_for_schedule(const PlanRequest& request) {
  CutCandidates candidates;
  const std::vector<Given> all =
      request.schedule ? std::vector{as_given(request)} : built_for_sizes(request);
  for (const Given& given : all) {
    if (!request.proceeds(
            fmt::format("pfeife: a cut for {} on microbatches of {}", given.name, given.size),
            &given != &all.front())) {
      break;
    }
    const WorkGraph graph = WorkGraph::of(request.costs, given.size);
    const OperatorRow row(graph);
    if (request.builder && find_builder(*request.builder).takes_costs) {
      add_by_turns(request, row, given, candidates);
      continue;
    }
    CutCost cost(row, request.costs.links, given.schedule, request.memory);
    candidates.add(cost, find_cut(cost), given.name);
  }
  return std::move(candidates).take(request.memory);
}

}  // namespace stagecraft
