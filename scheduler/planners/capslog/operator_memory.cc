#include "stagecraft/scheduler/planners/capslog/operator_memory.h"

#include <algorithm>
#include <utility>

#include "stagecraft/base/check.h"

namespace stagecraft {
OperatorMemory::OperatorMemory(const WorkGraph& graph, std::vector<int> in_flight)
    : graph_(&graph),
      in_flight_(std::move(in_flight)),
      rows_(static_cast<std::size_t>(graph.size())),
      parameters_(rows_.size()),
      results_(rows_.size()) {
  SC_CHECK(!in_flight_.empty(), "memory of operators on no device");
  fewest_in_flight_ = *std::ranges::min_element(in_flight_);
  filling_is_exact_ = fewest_in_flight_ == *std::ranges::max_element(in_flight_);
  list_parameters();
  list_results();
  list_rows();
}

void OperatorMemory::list_parameters() {
  std::vector<int> last(graph_->all_parameters().size(), -1);
  for (int op = 0; op < size(); ++op) {
    for (const int p : graph_->parameters(op)) {
      const auto at = static_cast<std::size_t>(p);
      const double held = graph_->all_parameters()[at].held;
      if (const int before = std::exchange(last[at], op); before < 0) {
        rows_[static_cast<std::size_t>(op)].parameters += held;
      } else {
        parameters_[static_cast<std::size_t>(op)].push_back({before, held});
      }
    }
  }
}

void OperatorMemory::list_results() {
  std::vector<double> handed_on(results_.size(), 0);
  std::vector<double> used_up(results_.size(), 0);  // by the operator that uses the result last
  for (const WorkGraph::Result& result : graph_->results()) {
    int last = result.producer;
    for (const int consumer : result.consumers) {
      results_[static_cast<std::size_t>(consumer)].push_back(
          {std::exchange(last, consumer), result.bytes});
    }
    handed_on[static_cast<std::size_t>(result.producer)] += result.bytes;
    used_up[static_cast<std::size_t>(last)] += last == result.producer ? 0 : result.bytes;
  }
  for (int op = 1; op + 1 < size(); ++op) {
    const auto at = static_cast<std::size_t>(op);
    const OperatorCost& cost = graph_->at(op);
    filling_is_exact_ = filling_is_exact_ && handed_on[at] <= cost.kept + cost.input + used_up[at];
  }
}

void OperatorMemory::list_rows() {
  for (int op = 0; op < size(); ++op) {
    const auto at = static_cast<std::size_t>(op);
    const OperatorCost& cost = graph_->at(op);
    Row& row = rows_[at];
    row.kept = cost.kept;
    row.transient = cost.transient;
    row.input = cost.input;
    row.earliest = op;
    for (const Uses* uses : {&parameters_, &results_}) {
      for (const Use& use : (*uses)[at]) {
        row.earliest = std::min(row.earliest, use.last);
      }
    }
  }
}

double OperatorMemory::fetched(const std::vector<Use>& uses, int first) {
  double bytes = 0;
  for (const Use& use : uses) {
    bytes += use.last < first ? use.bytes : 0;
  }
  return bytes;
}

double OperatorMemory::least(int op) const {
  const auto at = static_cast<std::size_t>(op);
  const Row& row = rows_[at];
  return row.parameters + fetched(parameters_[at], op) +
         fewest_in_flight_ * (row.kept + row.input) + std::max(0.0, row.transient - row.kept);
}

double OperatorMemory::Stage::append(int op) {
  const auto at = static_cast<std::size_t>(op);
  const Row& row = memory_->rows_[at];
  parameters_ += row.parameters;
  received_ += row.input;
  if (first_ > row.earliest) {
    parameters_ += fetched(memory_->parameters_[at], first_);
    received_ += fetched(memory_->results_[at], first_);
  }
  peak_ = std::max(peak_, kept_ + row.transient);
  kept_ += row.kept;
  return parameters_ + in_flight_ * (kept_ + received_) + std::max(0.0, peak_ - kept_);
}

}  // namespace stagecraft
