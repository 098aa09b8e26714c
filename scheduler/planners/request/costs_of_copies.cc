#include "stagecraft/scheduler/planners/request/costs_of_copies.h"

#include <span>

namespace stagecraft {

Costs costs_of_copies(const Costs& of_cut, const Layout& layout) {
  if (layout.replicas() == 1) {
    return of_cut;
  }
  Costs made = of_cut;
  made.stages.each.clear();
  made.links.edge_bytes.clear();
  MemoryModel& memory = made.stages.memory;
  constexpr std::vector<double> MemoryModel::*kByStage[] = {&MemoryModel::fixed,
                                                            &MemoryModel::trained,
                                                            &MemoryModel::states,
                                                            &MemoryModel::activations,
                                                            &MemoryModel::transient,
                                                            &MemoryModel::waiting,
                                                            &MemoryModel::input_transient,
                                                            &MemoryModel::weight_transient};
  for (const auto list : kByStage) {
    (memory.*list).clear();
  }
  for (int s = 0; s < layout.stages(); ++s) {
    const std::size_t model = layout.model_stage(StageId(s)).index();
    made.stages.each.push_back(of_cut.stages.each[model]);
    for (const auto list : kByStage) {
      if (const std::vector<double>& bytes = of_cut.stages.memory.*list; !bytes.empty()) {
        (memory.*list).push_back(bytes[model]);
      }
    }
  }
  for (const auto& [edge, bytes] : of_cut.links.edge_bytes) {
    for (int replica = 0; replica < layout.replicas(); ++replica) {
      const int from = layout.stage(StageId(edge.first), replica).value;
      made.links.edge_bytes[{from, layout.stage(StageId(edge.second), replica).value}] = bytes;
    }
  }
  return made;
}

LinkCosts links_of_rows(const LinkCosts& of_devices, const Layout& layout) {
  if (layout.is_single() || of_devices.each.empty()) {
    return of_devices;
  }
  LinkCosts made = of_devices;
  made.each.clear();
  for (int from = 0; from < layout.rows(); ++from) {
    for (int to = 0; to < layout.rows(); ++to) {
      const std::span<const Rank> senders = layout.ranks_of(from);
      const std::span<const Rank> receivers = layout.ranks_of(to);
      if (from == to || senders.empty() || receivers.empty()) {
        continue;
      }
      Link slowest;
      const auto units = static_cast<std::size_t>(layout.units());
      for (std::size_t unit = 0; unit < units; ++unit) {
        const Rank sender = senders[unit * senders.size() / units];
        const Rank receiver = receivers[unit * receivers.size() / units];
        slowest = slower(slowest, of_devices.between(sender.value, receiver.value));
      }
      made.each[{from, to}] = slowest;
    }
  }
  return made;
}

}  // namespace stagecraft
