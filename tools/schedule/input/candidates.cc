#include "stagecraft/tools/schedule/input/candidates.h"

#include <algorithm>
#include <cmath>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/costs/cut_costs.h"
#include "stagecraft/tools/schedule/input/cost_options.h"

namespace stagecraft::tools {
namespace {

BuildRequest request_of(const BuilderInfo& builder, const CommonJob& job) {
  BuildRequest request{.devices = job.devices, .microbatches = job.microbatches};
  const StageGraph chain = StageGraph::chain(job.devices);
  if (builder.takes_graph) {
    request.graph = chain;
  }
  if (builder.chunks == ChunkRule::Open) {
    request.chunks = job.chunks;
  }
  if (builder.takes_costs) {
    request.costs = cut_costs(job.costs, stages_of(job.costs, job.devices), chain);
  }
  return request;
}

}  // namespace

std::vector<const BuilderInfo*> named_builders(const std::vector<std::string>& names) {
  std::vector<const BuilderInfo*> found;
  const auto add = [&](const BuilderInfo& builder) {
    if (std::ranges::find(found, &builder) == found.end()) {
      found.push_back(&builder);
    }
  };
  for (const std::string& name : names) {
    if (name == "all") {
      for (const BuilderInfo& builder : builders()) {
        add(builder);
      }
    } else {
      add(find_builder(name));
    }
  }
  return found;
}

Candidate built_candidate(const BuilderInfo& builder, const CommonJob& job) {
  Candidate candidate{.name = std::string(builder.name)};
  try {
    const Schedule schedule = build_schedule(builder.name, request_of(builder, job));
    candidate.figures = figures_of(schedule, schedule.stage_graph(), job.costs);
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleParameter) {
      throw;
    }
    candidate.reason = error.message();
  }
  return candidate;
}

}  // namespace stagecraft::tools
