#include "stagecraft/scheduler/planners/capslog/operator_memory.h"

#include <algorithm>
#include <utility>

#include "stagecraft/base/check.h"

namespace stagecraft {
OperatorMemory::OperatorMemory(const WorkGraph& graph, std::vector<int> in_flight)
    : graph_(&graph),
      in_flight_(std::move(in_flight)),
      parameters_(static_cast<std::size_t>(graph.size())),
      results_(static_cast<std::size_t>(graph.size())) {
  SC_CHECK(!in_flight_.empty(), "memory of operators on no device");
  fewest_in_flight_ = *std::ranges::min_element(in_flight_);
  filling_is_exact_ = fewest_in_flight_ == *std::ranges::max_element(in_flight_);
  std::vector<int> last(graph.all_parameters().size(), -1);
  for (int op = 0; op < graph.size(); ++op) {
    for (const int p : graph.parameters(op)) {
      const auto at = static_cast<std::size_t>(p);
      parameters_[static_cast<std::size_t>(op)].push_back(
          {-1, std::exchange(last[at], op), graph.all_parameters()[at].held});
    }
  }
  list_results();
}

void OperatorMemory::list_results() {
  std::vector<double> handed_on(results_.size(), 0);
  for (const WorkGraph::Result& result : graph_->results()) {
    int last = -1;
    for (const int consumer : result.consumers) {
      results_[static_cast<std::size_t>(consumer)].push_back(
          {result.producer, std::exchange(last, consumer), result.bytes});
    }
    handed_on[static_cast<std::size_t>(result.producer)] += result.bytes;
  }
  for (int op = 0; op + 1 < size(); ++op) {
    const OperatorCost& cost = graph_->at(op);
    filling_is_exact_ =
        filling_is_exact_ && handed_on[static_cast<std::size_t>(op)] <= cost.kept + cost.input;
  }
}

double OperatorMemory::fetched(const std::vector<Use>& uses, int first) {
  double bytes = 0;
  for (const Use& use : uses) {
    bytes += use.made < first && use.before < first ? use.bytes : 0;
  }
  return bytes;
}

double OperatorMemory::least(int op) const {
  const OperatorCost& cost = graph_->at(op);
  const double kept = cost.kept + cost.input;
  return fetched(parameters_[static_cast<std::size_t>(op)], op) + fewest_in_flight_ * kept +
         std::max(0.0, cost.transient - cost.kept);
}

double OperatorMemory::Stage::append(int op) {
  const auto at = static_cast<std::size_t>(op);
  const OperatorCost& cost = memory_->graph_->at(op);
  parameters_ += fetched(memory_->parameters_[at], first_);
  received_ += cost.input + fetched(memory_->results_[at], first_);
  peak_ = std::max(peak_, kept_ + cost.transient);
  kept_ += cost.kept;
  return parameters_ + in_flight_ * (kept_ + received_) + std::max(0.0, peak_ - kept_);
}

}  // namespace stagecraft
