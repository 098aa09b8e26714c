#include "stagecraft/scheduler/planners/capslog/capslog.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/planners/capslog/memory_cut.h"

namespace stagecraft {
namespace {

/// The number of microbatches that each place keeps, and the builder of the schedule.
struct DeviceKind {
  std::string_view name;
  std::vector<int> (*in_flight)(int devices, int microbatches);
  Schedule (*build)(const StageGraph& stages, int microbatches);
};

const DeviceKind kKinds[] = {
    {"1f1b",
     [](int devices, int microbatches) {
       std::vector<int> in_flight;
       for (int place = 0; place < devices; ++place) {
         in_flight.push_back(std::min(microbatches, devices - place));
       }
       return in_flight;
     },
     [](const StageGraph& stages, int microbatches) { return one_f_one_b(stages, microbatches); }},
    {"gpipe",
     [](int devices, int microbatches) {
       return std::vector<int>(static_cast<std::size_t>(devices), microbatches);
     },
     [](const StageGraph& stages, int microbatches) { return gpipe(stages, microbatches); }},
};

Candidate candidate_of(const WorkGraph& graph,
                       const MemoryCut& cut,
                       const DeviceKind& kind,
                       int microbatches) {
  StageOperators stages = consecutive_stages(cut.ends);
  const StageGraph stage_graph = stage_graph_of(graph, stages);
  return {.planner = "capslog",
          .stages = std::move(stages),
          .microbatch_size = graph.samples(),
          .schedule = kind.build(stage_graph, microbatches).to_list(),
          .schedule_name = fmt::format("{}{}", stage_graph.is_chain() ? "" : "dag-", kind.name)};
}

}  // namespace

std::optional<std::string> capslog_refuses(const PlanRequest& request) {
  if (request.schedule || std::ranges::none_of(kKinds, [&](const DeviceKind& kind) {
        return takes_builder(request, kind.name);
      })) {
    return "capslog cuts for 1f1b and gpipe only; pfeife cuts for any schedule";
  }
  return request.lacks_pieces("capslog");
}

std::vector<Candidate> capslog_candidates(const PlanRequest& request) {
  std::vector<std::pair<double, Candidate>> found;  // by peak
  std::optional<std::pair<double, Error>> lacking;  // the smallest peak that is too large
  for (const int samples : request.sizes()) {
    const WorkGraph graph = WorkGraph::of(request.costs, samples);
    const int microbatches = request.batch / samples;
    for (const DeviceKind& kind : kKinds) {
      if (!takes_builder(request, kind.name) ||
          !request.proceeds(fmt::format("capslog: {} on microbatches of {}", kind.name, samples),
                            !found.empty())) {
        continue;
      }
      const OperatorMemory memory(graph, kind.in_flight(request.devices, microbatches));
      const MemoryCut cut = memory_cut(memory, request.devices);
      if (std::optional<Error> lack = lack_of_memory(cut, request.memory)) {
        if (!lacking || cut.peak() < lacking->first) {
          lacking.emplace(cut.peak(), *std::move(lack));
        }
        continue;
      }
      found.emplace_back(cut.peak(), candidate_of(graph, cut, kind, microbatches));
    }
  }
  if (found.empty() && lacking) {
    throw Error(lacking->second);
  }
  std::ranges::stable_sort(found, {}, [](const auto& one) { return one.first; });
  std::vector<Candidate> candidates;
  for (auto& [peak, candidate] : found) {
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace stagecraft
