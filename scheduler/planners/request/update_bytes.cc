#include "stagecraft/scheduler/planners/request/update_bytes.h"

#include <algorithm>
#include <map>

namespace stagecraft {

void UpdateBytes::add(int row, const Bytes& bytes) {
  Bytes& most = rows_[static_cast<std::size_t>(row)];
  if (bytes.all() > most.all()) {
    most = bytes;
  }
}

void UpdateBytes::add_copies(std::span<const int> rows, int devices, double gradients) {
  for (const int row : rows) {
    add(row, {.held = 2 * gradients, .received = (devices - 1) * gradients});
  }
}

/// Each rank sends as many parts as the rank with the most has, and gathers those of all ranks.
void UpdateBytes::add_tie(std::span<const int> rows, double gradients) {
  std::map<int, int> parts;
  int most = 0;
  for (const int row : rows) {
    most = std::max(most, ++parts[row]);
  }
  const auto ranks = static_cast<double>(parts.size());
  const double sent = most * gradients;
  for (const auto& [row, count] : parts) {
    add(row,
        {.held = sent + (ranks == 1 ? gradients : ranks * sent), .received = (ranks - 1) * sent});
  }
}

void UpdateBytes::add_ties(const WorkGraph& graph,
                           const StageGraph& stages,
                           std::span<const int> rows) {
  std::map<std::vector<StageId>, double> shared;
  for (const TiedParameter& tied : stages.tied()) {
    const auto parameter =
        std::ranges::find(graph.all_parameters(), tied.name, &ParameterCost::name);
    shared[tied.stages] += parameter->trained();
  }
  for (const auto& [sharing, gradients] : shared) {
    std::vector<int> of_stages;
    for (const StageId stage : sharing) {
      of_stages.push_back(rows[stage.index()]);
    }
    add_tie(of_stages, gradients);
  }
}

}  // namespace stagecraft
