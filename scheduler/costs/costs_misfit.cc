#include "stagecraft/scheduler/costs/costs_misfit.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/placement.h"

namespace stagecraft {
namespace {

std::string stages_text(int stages) {
  return fmt::format("{} stage{}", stages, stages == 1 ? "" : "s");
}

/// Returns the first transfer between two rows whose link the costs do not name.
std::optional<std::pair<int, int>> unknown_link(const LinkCosts& links,
                                                const Schedule& schedule,
                                                const StageGraph& graph) {
  const Placement placement = Placement::of(schedule, graph.size());
  for (const auto& [from, to] : graph.edges()) {
    const auto sender = placement.row(StageId(from));
    const auto receiver = placement.row(StageId(to));
    if (!sender || !receiver || *sender == *receiver) {
      continue;
    }
    if (!links.each.contains({*sender, *receiver})) {
      return std::pair(*sender, *receiver);
    }
    const bool back = graph.sends_gradient(StageId(to), StageId(from));
    if (back && !links.each.contains({*receiver, *sender})) {
      return std::pair(*receiver, *sender);
    }
  }
  return std::nullopt;
}

std::optional<std::string> links_misfit(const LinkCosts& links,
                                        const Schedule& schedule,
                                        const StageGraph& graph) {
  const auto rows = static_cast<int>(schedule.rows().size());
  for (const auto& [ends, link] : links.each) {
    if (const int row = std::max(ends.first, ends.second); row >= rows) {
      return fmt::format("it has a link of row {}, but the schedule has {} row{}",
                         row,
                         rows,
                         rows == 1 ? "" : "s");
    }
  }
  if (links.each.empty() || links.usual != Link()) {
    return std::nullopt;
  }
  if (const auto link = unknown_link(links, schedule, graph)) {
    return fmt::format("it lacks the link from row {} to row {}", link->first, link->second);
  }
  return std::nullopt;
}

}  // namespace

bool knows_stage_times(const Costs& costs) {
  const StageCosts& stages = costs.stages;
  return !stages.each.empty() || stages.usual != Durations() || stages.group ||
         !stages.groups.empty();
}

std::optional<std::string> stages_misfit(const Costs& costs, int stages) {
  if (!knows_stage_times(costs)) {
    return "it lacks the times of stages";
  }
  const int known = static_cast<int>(costs.stages.each.size());
  const bool knows_all = costs.stages.usual != Durations();
  if (known > stages || (known < stages && !knows_all)) {
    return fmt::format(
        "it has the times of {}, but the schedule has {}", stages_text(known), stages_text(stages));
  }
  return std::nullopt;
}

std::optional<std::string> costs_misfit(const Costs& costs,
                                        const Schedule& schedule,
                                        const StageGraph& graph) {
  if (auto misfit = stages_misfit(costs, graph.size())) {
    return misfit;
  }
  return links_misfit(costs.links, schedule, graph);
}

}  // namespace stagecraft
