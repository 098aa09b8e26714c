#include "stagecraft/compiler/measure/operator_uses.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "stagecraft/compiler/cut/cut_points.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {
namespace {

/// Writers knows the maker and the last writer of each value, up to the present node.
class Writers {
 public:
  explicit Writers(const Graph& graph) : graph_(graph) {}

  /// Returns the reads of a computed value: one of its own maker, and one without bytes of the node
  /// that has since written its memory through a view.
  [[nodiscard]] std::vector<OperatorRead> of(ValueId id) const {
    const Made& own = made_.at(id);
    std::vector<OperatorRead> reads{
        {own.node, own.output, static_cast<double>(bytes_of(graph_.at(id)))}};
    const auto last = written_.find(graph_.at(id).alias_set);
    if (last != written_.end() && last->second > own.node) {
      reads.push_back({.producer = last->second});
    }
    return reads;
  }

  void pass(int number, const Node& node) {
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      if (node.results[r] != kNoValue) {
        made_[node.results[r]] = {number, static_cast<int>(r)};
      }
    }
    for (const ValueId value : node.writes) {
      if (graph_.at(value).kind == ValueKind::Computed) {
        written_[graph_.at(value).alias_set] = number;
      }
    }
  }

 private:
  struct Made {
    int node = 0;
    int output = 0;
  };
  const Graph& graph_;
  std::map<ValueId, Made> made_;
  std::map<int, int> written_;  // by alias set: the last node that wrote it in place
};

}  // namespace

void note_uses(const Graph& graph, std::vector<OperatorCost>& costs) {
  Writers writers(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    OperatorCost& cost = costs[n];
    cost.reads.clear();
    cost.parameters.clear();
    cost.input = 0;
    std::set<ValueId> seen{kNoValue};
    for (const ValueId id : reads_of(graph.nodes[n])) {
      if (!seen.insert(id).second) {
        continue;
      }
      const Value& value = graph.at(id);
      switch (value.kind) {
        case ValueKind::Input:
        case ValueKind::Label:
          cost.input += static_cast<double>(bytes_of(value));
          break;
        case ValueKind::Parameter:
          cost.parameters.push_back(
              graph.parameters[static_cast<std::size_t>(value.position)].name);
          break;
        case ValueKind::Computed:
          std::ranges::move(writers.of(id), std::back_inserter(cost.reads));
          break;
        case ValueKind::Buffer:
        case ValueKind::Constant:
          break;
      }
    }
    writers.pass(static_cast<int>(n), graph.nodes[n]);
  }
  for (OperatorCost& cost : costs) {
    cost.joined = true;
  }
  for (const std::size_t first : cut_points(graph)) {
    costs[first].joined = false;
  }
}

}  // namespace stagecraft
