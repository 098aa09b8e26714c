#include "stagecraft/scheduler/costs/cut_costs.h"

#include <algorithm>
#include <cmath>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// Calls `add` with each stage of the costs that overlaps [begin, end), and the overlap.
template <class Add>
void for_each_part(double begin, double end, int stages, Add&& add) {
  for (int s = std::max(0, static_cast<int>(begin)); s < stages; ++s) {
    const double part = std::min(end, s + 1.0) - std::max(begin, static_cast<double>(s));
    if (part <= 1e-12) {
      break;
    }
    add(static_cast<std::size_t>(s), part);
  }
}

/// Returns the place of each stage in its copy of the model.
std::vector<int> places_in_model(const StageGraph& graph) {
  const auto order = graph.topological_order();
  SC_CHECK(order.has_value(), "cut_costs() of a stage graph with a cycle");
  std::vector<int> placed(static_cast<std::size_t>(graph.replicas()), 0);
  std::vector<int> places(static_cast<std::size_t>(graph.size()), 0);
  for (const StageId s : *order) {
    places[s.index()] = placed[static_cast<std::size_t>(graph.replica_of(s))]++;
  }
  return places;
}

Durations& add_scaled(Durations& sum, const Durations& more, double factor) {
  sum.forward += factor * more.forward;
  sum.backward += factor * more.backward;
  sum.backward_input += factor * more.backward_input;
  sum.backward_weight += factor * more.backward_weight;
  sum.update += factor * more.update;
  sum.recompute += factor * more.recompute;
  return sum;
}

/// The share of one stage of the schedule, in stages of the costs.
struct Share {
  double begin = 0;
  double end = 0;
  double microbatch = 1;  ///< the stage's microbatch in microbatches of the step
};

std::vector<double> cut_bytes(const std::vector<double>& bytes,
                              const std::vector<Share>& shares,
                              int stages,
                              bool by_microbatch) {
  std::vector<double> cut;
  if (bytes.empty()) {
    return cut;
  }
  for (const Share& share : shares) {
    double sum = 0;
    for_each_part(share.begin, share.end, stages, [&](std::size_t s, double part) {
      sum += s < bytes.size() ? part * bytes[s] : 0;
    });
    cut.push_back(by_microbatch ? sum * share.microbatch : sum);
  }
  return cut;
}

StageCosts cut_stages(const StageCosts& costs, const std::vector<Share>& shares, int stages) {
  StageCosts cut = costs;
  cut.each.clear();
  for (const Share& share : shares) {
    Durations sum{0, 0, 0, 0, 0, 0};
    for_each_part(share.begin, share.end, stages, [&](std::size_t s, double part) {
      add_scaled(sum, costs.of_stage(StageId(s)), part * share.microbatch);
    });
    cut.each.push_back(sum);
  }
  const MemoryModel& memory = costs.memory;
  cut.memory.fixed = cut_bytes(memory.fixed, shares, stages, false);
  cut.memory.trained = cut_bytes(memory.trained, shares, stages, false);
  cut.memory.states = cut_bytes(memory.states, shares, stages, false);
  cut.memory.activations = cut_bytes(memory.activations, shares, stages, true);
  cut.memory.transient = cut_bytes(memory.transient, shares, stages, true);
  cut.memory.replayed = cut_bytes(memory.replayed, shares, stages, true);
  return cut;
}

/// Returns the bytes of each edge, from the nearest cut of the costs.
std::map<LinkCosts::Pair, double> cut_edges(const LinkCosts& links,
                                            const std::vector<Share>& shares,
                                            int stages,
                                            const StageGraph& graph) {
  std::map<LinkCosts::Pair, double> bytes;
  for (const auto& [from, to] : graph.edges()) {
    const double at = shares[static_cast<std::size_t>(from)].end;
    const int cut = std::clamp(static_cast<int>(std::lround(at)), 1, std::max(1, stages - 1));
    const auto found = links.edge_bytes.find({cut - 1, cut});
    const double crossing = found == links.edge_bytes.end() ? links.bytes : found->second;
    const int size =
        std::min(graph.microbatch_size(StageId(from)), graph.microbatch_size(StageId(to)));
    bytes[{from, to}] = size * crossing;
  }
  return bytes;
}

}  // namespace

int stages_of(const Costs& costs, int devices) {
  const MemoryModel& memory = costs.stages.memory;
  const std::size_t listed = std::max({costs.stages.each.size(),
                                       memory.fixed.size(),
                                       memory.activations.size(),
                                       memory.transient.size()});
  return std::max(devices, static_cast<int>(listed));
}

Costs cut_costs(const Costs& costs, int stages, const StageGraph& graph) {
  const double per_stage = static_cast<double>(stages) * graph.replicas() / graph.size();
  std::vector<Share> shares;
  for (const int place : places_in_model(graph)) {
    const StageId s(shares.size());
    shares.push_back({place * per_stage,
                      (place + 1) * per_stage,
                      static_cast<double>(graph.microbatch_size(s))});
  }
  Costs cut = costs;
  cut.stages = cut_stages(costs.stages, shares, stages);
  cut.links.edge_bytes = cut_edges(costs.links, shares, stages, graph);
  if (graph.size() != stages) {
    cut.stages.groups.clear();  // their pairs of stages no longer exist
    if (cut.stages.group) {
      cut.stages.group = *cut.stages.group * per_stage;
    }
  }
  return cut;
}

}  // namespace stagecraft
