#include "stagecraft/scheduler/planners/request/update_bytes.h"

#include <algorithm>
#include <map>
#include <set>

namespace stagecraft {

UpdateBytes::Bytes UpdateBytes::of(int row) const {
  const Row& sums = rows_[static_cast<std::size_t>(row)];
  Bytes ties = sums.ties;
  ties.held += sums.gathered;
  return ties.all() > sums.copies.all() ? ties : sums.copies;
}

/// A rank gets its own part of the gradients from all others, and the sums of the other parts.
void UpdateBytes::add_copies(std::span<const int> rows, int devices, double gradients) {
  if (devices == 1) {
    return;  // it adds in place
  }
  const double part = gradients / devices;
  for (const int row : std::set<int>(rows.begin(), rows.end())) {
    Bytes& copies = rows_[static_cast<std::size_t>(row)].copies;
    copies.held += part;
    copies.received += 2 * (devices - 1) * part;
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
    Row& sums = rows_[static_cast<std::size_t>(row)];
    if (ranks > 1) {
      sums.ties.held += sent;
      sums.ties.received += (ranks - 1) * sent;
    }
    sums.gathered = std::max(sums.gathered, ranks > 1 ? ranks * sent : sent + gradients);
  }
}

void UpdateBytes::add_ties(const WorkGraph& graph,
                           const StageGraph& stages,
                           std::span<const int> rows,
                           std::span<const int> shards) {
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
    add_tie(of_stages, gradients / shards[sharing.front().index()]);
  }
}

}  // namespace stagecraft
