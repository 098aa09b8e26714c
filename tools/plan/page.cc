#include "stagecraft/tools/plan/page.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/scheduler/render/html/plan_page.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tools/plan/report.h"

namespace stagecraft::tools {
namespace {

/// More points make a page no clearer.
constexpr std::size_t kMostCandidates = 500;

std::vector<PlanPage::Stage> stages_of(const PlanProposal& best) {
  std::vector<PlanPage::Stage> stages;
  for (std::size_t s = 0; s < best.devices.size(); ++s) {
    const auto of_cut = static_cast<std::size_t>(best.stage_of_cut[s]);
    const Durations& times = best.costs.stages.each[s];
    const MemoryModel& memory = best.costs.stages.memory;
    stages.push_back({.name = fmt::format("stage {}", s),
                      .operators = static_cast<int>(best.candidate.stages[of_cut].size()),
                      .device = best.first_device(best.devices[s]),
                      .copies = static_cast<int>(
                          best.devices_of_row[static_cast<std::size_t>(best.devices[s])].size()),
                      .forward = times.forward,
                      .backward = times.backward,
                      .bytes = memory.fixed[s] + memory.activations[s] + memory.transient[s]});
  }
  return stages;
}

std::vector<PlanPage::Edge> edges_of(const PlanProposal& best) {
  std::vector<PlanPage::Edge> edges;
  for (const StageGraph::Edge& edge : best.graph.edges()) {
    edges.push_back({edge.first, edge.second, best.costs.links.edge_bytes.at(edge)});
  }
  return edges;
}

/// Returns what every row holds at its peak.
std::vector<PlanPage::Rank> ranks_of(const PlanProposal& best) {
  std::vector<PlanPage::Rank> ranks(best.bytes.size());
  const MemoryModel& memory = best.costs.stages.memory;
  for (std::size_t s = 0; s < best.devices.size(); ++s) {
    PlanPage::Rank& rank = ranks[static_cast<std::size_t>(best.devices[s])];
    rank.parameters += memory.fixed[s];
    rank.transient = std::max(rank.transient, memory.transient[s]);
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].kept = std::max(0.0, best.bytes[r] - ranks[r].parameters - ranks[r].transient);
  }
  return ranks;
}

/// Returns the bytes that predictions may fill on every rank; infinite if ranks differ, because the
/// page draws one limit.
double budget_of(const PlanProposal& best) {
  const double first = best.memory.front();
  const bool alike =
      std::ranges::all_of(best.memory, [&](double memory) { return memory == first; });
  return alike ? usable(first) : std::numeric_limits<double>::infinity();
}

}  // namespace

std::string plan_page(const PlanRequest& request, std::span<const PlanProposal> best_first) {
  const PlanProposal& best = best_first.front();
  const Timeline timeline = simulate(best.candidate.schedule, best.graph, best.costs, best.orders);
  PlanPage page{
      .title = fmt::format("{} by {}", best.candidate.schedule_name, best.candidate.planner),
      .facts = {{"devices", fmt::format("{}", request.devices)},
                {"microbatches",
                 fmt::format("{} of {}", best.microbatches, best.candidate.microbatch_size)},
                {"step", time_text(best.step)},
                {"above the least", fmt::format("{:.1f} %", 100 * best.gap())},
                {"fullest device", bytes_text(best.most_bytes())}},
      .why = {fmt::format("What binds: {}.", to_string(best.binds))},
      .stages = stages_of(best),
      .edges = edges_of(best),
      .ranks = ranks_of(best),
      .budget = budget_of(best),
      .candidates = {},
      .bound = best.bound,
      .schedule = &best.candidate.schedule,
      .graph = &best.graph,
      .timeline = &timeline};
  for (const std::string& sentence : why_sentences(request, best_first)) {
    page.why.push_back(sentence);
  }
  for (const PlanProposal& one : best_first.first(std::min(kMostCandidates, best_first.size()))) {
    page.candidates.push_back({fmt::format("{}: {}, {} x {}",
                                           one.candidate.planner,
                                           one.candidate.schedule_name,
                                           one.microbatches,
                                           one.candidate.microbatch_size),
                               one.step,
                               one.most_bytes(),
                               &one == &best});
  }
  return render_plan_page(page);
}

}  // namespace stagecraft::tools
