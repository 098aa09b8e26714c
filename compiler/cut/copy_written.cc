#include "stagecraft/compiler/cut/copy_written.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "stagecraft/compiler/cut/memory_groups.h"

namespace stagecraft {
namespace {

/// Calls `visit` with every value that the node names.
template <class Visit>
void for_each_value(Node& node, const Visit& visit) {
  for (Operand& operand : node.operands) {
    if (auto* value = std::get_if<ValueId>(&operand)) {
      visit(*value);
    } else if (auto* list = std::get_if<ValueList>(&operand)) {
      std::ranges::for_each(list->values, visit);
    }
  }
  std::ranges::for_each(node.results, visit);
  std::ranges::for_each(node.writes, visit);
}

class Copier {
 public:
  Copier(Graph& graph, StageAssignment& assignment)
      : graph_(graph), stage_of_(assignment.stage_of) {}

  void run() {
    while (const std::optional<Copy> copy = next_copy()) {
      insert(*copy);
    }
  }

 private:
  struct Copy {
    ValueId value;
    std::size_t before = 0;  ///< the operator before which the copy is inserted
  };

  /// Returns the copy for the first memory that two stages use while it is written.
  std::optional<Copy> next_copy() {
    for (const MemoryGroup& group : memory_groups(graph_)) {
      const auto leaves = [&](std::size_t n) {
        return stage_of_[n] != stage_of_[group.operators.front()];
      };
      const auto first = std::ranges::find_if(group.operators, leaves);
      if (group.foreign || first == group.operators.end() ||
          !std::all_of(first, group.operators.end(), leaves)) {
        continue;
      }
      if (const std::optional<ValueId> value = only_one_used(group.alias_set, *first)) {
        return Copy{.value = *value, .before = *first};
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] bool made_before(ValueId value, std::size_t node) const {
    return graph_.at(value).position < static_cast<int>(node);
  }

  /// Returns the value of the alias set that was made before the operator and is used from there
  /// on; nothing unless there is exactly one.
  std::optional<ValueId> only_one_used(int alias_set, std::size_t node) {
    std::set<ValueId> used;
    const auto note = [&](ValueId value) {
      if (value != kNoValue && graph_.at(value).alias_set == alias_set &&
          made_before(value, node)) {
        used.insert(value);
      }
    };
    for (std::size_t n = node; n < graph_.nodes.size(); ++n) {
      for_each_value(graph_.nodes[n], note);
    }
    for_each_result(note);
    return used.size() == 1 ? std::optional(*used.begin()) : std::nullopt;
  }

  template <class Visit>
  void for_each_result(const Visit& visit) {
    std::ranges::for_each(graph_.outputs, visit);
    std::ranges::for_each(graph_.metrics, visit);
    visit(graph_.loss);
  }

  void insert(const Copy& copy) {
    const ValueId copied{static_cast<int>(graph_.values.size())};
    Value made = graph_.at(copy.value);
    made.alias_set = fresh_set();
    made.position = static_cast<int>(copy.before);
    const int shared = graph_.at(copy.value).alias_set;
    for (Value& value : graph_.values) {
      if (value.kind == ValueKind::Computed && value.position >= made.position) {
        value.alias_set = value.alias_set == shared ? made.alias_set : value.alias_set;
        ++value.position;
      }
    }
    const auto use_copy = [&](ValueId& value) { value = value == copy.value ? copied : value; };
    for (std::size_t n = copy.before; n < graph_.nodes.size(); ++n) {
      for_each_value(graph_.nodes[n], use_copy);
    }
    for_each_result(use_copy);
    graph_.values.push_back(std::move(made));
    const auto place = static_cast<std::ptrdiff_t>(copy.before);
    const Node& reader = graph_.nodes[copy.before];
    Node node{.name = "aten::clone",
              .operands = {copy.value, c10::IValue()},
              .results = {copied},
              .annotations = reader.annotations,
              .autocast = reader.autocast,
              .grad_mode = reader.grad_mode};
    graph_.nodes.insert(graph_.nodes.begin() + place, std::move(node));
    stage_of_.insert(stage_of_.begin() + place, stage_of_[copy.before]);
  }

  [[nodiscard]] int fresh_set() const {
    int most = 0;
    for (const Value& value : graph_.values) {
      most = std::max(most, value.alias_set);
    }
    return most + 1;
  }

  Graph& graph_;
  std::vector<int>& stage_of_;
};

}  // namespace

void copy_written(Graph& graph, StageAssignment& assignment) {
  Copier(graph, assignment).run();
}

}  // namespace stagecraft
