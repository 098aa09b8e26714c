#include "stagecraft/scheduler/planners/pfeife/operator_row.h"

namespace stagecraft {

OperatorRow::OperatorRow(const WorkGraph& graph)
    : graph_(&graph),
      before_(1),
      forward_before_(longest_before(graph, [](const OperatorCost& op) { return op.forward; })),
      backward_before_(longest_before(
          graph, [](const OperatorCost& op) { return op.backward_input + op.backward_weight; })),
      crossing_(static_cast<std::size_t>(graph.size())),
      users_(graph.all_parameters().size()) {
  for (int op = 0; op < graph.size(); ++op) {
    const OperatorCost& cost = graph.at(op);
    Sums sums = before_.back();
    sums.forward += cost.forward;
    sums.backward_input += cost.backward_input;
    sums.backward_weight += cost.backward_weight;
    sums.update += cost.update;
    before_.push_back(sums);
    for (const int p : graph.parameters(op)) {
      users_[static_cast<std::size_t>(p)].push_back(op);
    }
  }
  for (std::size_t p = 0; p < users_.size(); ++p) {
    if (users_[p].size() > 1 && graph.all_parameters()[p].trained() > 0) {
      shared_.push_back(static_cast<int>(p));
    }
  }
  for (std::size_t v = graph.results().size(); v-- > 0;) {
    const WorkGraph::Result& value = graph.results()[v];
    for (int op = value.producer + 1; op <= value.consumers.back(); ++op) {
      crossing_[static_cast<std::size_t>(op)].push_back(static_cast<int>(v));
    }
  }
}

StageWork OperatorRow::times(int first, int last) const {
  const Sums& a = before_[static_cast<std::size_t>(first)];
  const Sums& b = before_[static_cast<std::size_t>(last)];
  return {.forward = b.forward - a.forward,
          .backward_input = b.backward_input - a.backward_input,
          .backward_weight = b.backward_weight - a.backward_weight,
          .update = b.update - a.update};
}

StageWork OperatorRow::work(int first, int last) const {
  StageWork work = times(first, last);
  double most = 0;
  for (int op = first; op < last; ++op) {
    const OperatorCost& cost = graph_->at(op);
    most = std::max(most, work.kept + cost.transient);
    work.kept += cost.kept;
    work.input += cost.input;
    for (const int p : graph_->parameters(op)) {
      const std::vector<int>& users = users_[static_cast<std::size_t>(p)];
      if (*std::ranges::lower_bound(users, first) == op) {  // the stage's first use of it
        const ParameterCost& parameter = graph_->all_parameters()[static_cast<std::size_t>(p)];
        work.held += parameter.held;
        work.trained += parameter.trained();
      }
    }
  }
  work.transient = std::max(0.0, most - work.kept);
  for (int op = last; op-- > first;) {
    add_halves(graph_->at(op), work);
  }
  return work;
}

StageOperators stages_of_cuts(std::span<const int> cuts, int operators) {
  std::vector<int> ends(cuts.begin(), cuts.end());
  ends.push_back(operators);
  return consecutive_stages(ends);
}

}  // namespace stagecraft
