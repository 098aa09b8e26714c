#include "stagecraft/scheduler/planners/balance/cut_items.h"

#include <algorithm>
#include <set>

namespace stagecraft {
namespace {

/// Adds every result to the items from its producer up to the one before its last reader.
void add_crossing(const WorkGraph& graph, std::vector<CutItem>& items) {
  std::vector<double> change(items.size(), 0);
  for (const WorkGraph::Result& result : graph.results()) {
    change[static_cast<std::size_t>(result.producer)] += result.bytes;
    change[static_cast<std::size_t>(result.consumers.back())] -= result.bytes;
  }
  double crossing = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    crossing += change[i];
    items[i].crossing = std::max(0.0, crossing);  // rounding may leave a sum just below 0
  }
}

}  // namespace

std::vector<CutItem> cut_items(const WorkGraph& graph, double in_flight) {
  std::vector<CutItem> items(static_cast<std::size_t>(graph.size()));
  std::set<int> parameters;
  for (int op = 0; op < graph.size(); ++op) {
    const OperatorCost& cost = graph.at(op);
    CutItem& item = items[static_cast<std::size_t>(op)];
    item.time = cost.time();
    item.bytes = in_flight * (cost.kept + cost.input);
    for (const int p : graph.parameters(op)) {
      item.bytes += parameters.insert(p).second
                        ? graph.all_parameters()[static_cast<std::size_t>(p)].held
                        : 0;
    }
  }
  add_crossing(graph, items);
  return items;
}

StageOperators stages_of(const std::vector<ItemRange>& ranges) {
  std::vector<int> ends;
  for (const auto& [first, end] : ranges) {
    ends.push_back(static_cast<int>(end));
  }
  return consecutive_stages(ends);
}

}  // namespace stagecraft
