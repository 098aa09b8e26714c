#include "stagecraft/compiler/cut/driver_parts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/cut/memory_groups.h"
#include "stagecraft/compiler/graph/driver_code.h"
#include "stagecraft/compiler/graph/operator_paths.h"

namespace stagecraft {
namespace {

const std::string& given_name(const Graph& graph, const Node& node) {
  return std::get<std::shared_ptr<const DriverCode>>(
             graph.attachments[static_cast<std::size_t>(node.function)])
      ->given_name();
}

class DriverParts {
 public:
  DriverParts(const Graph& graph, StageAssignment stages)
      : graph_(graph),
        stages_(std::move(stages)),
        levels_(graph.nodes.size(), 0),
        most_(2 * static_cast<int>(std::ranges::count_if(graph.nodes, is_driver_code))) {}

  StageAssignment run() {
    while (raise()) {
    }
    return parts();
  }

 private:
  static bool is_on_driver(int level) { return level % 2 == 1; }

  /// Returns the level of the operator in its stage: odd for code of the driver, even for others.
  [[nodiscard]] int level_of(std::size_t n) const {
    int level = levels_[n];
    for (const ValueId read : reads_of(graph_.nodes[n])) {
      const Value& value = graph_.at(read);
      const auto maker = static_cast<std::size_t>(value.position);
      if (value.kind == ValueKind::Computed && stages_.stage_of[maker] == stages_.stage_of[n]) {
        level = std::max(level, levels_[maker]);
      }
    }
    return fitting(n, level);
  }

  /// Returns the least level from this one on that the operator may have.
  [[nodiscard]] int fitting(std::size_t n, int level) const {
    return level + (is_driver_code(graph_.nodes[n]) != is_on_driver(level) ? 1 : 0);
  }

  /// Raises levels once, to those that operands and the memory that is written ask for. Returns
  /// whether any has changed.
  bool raise() {
    bool changed = false;
    const auto lift = [&](std::size_t n, int level) {
      if (level > most_) {
        throw Error(Errc::CompilePartition,
                    fmt::format("{} uses memory that is written in place before and after code of "
                                "the driver, and the two share no memory: use the operator that "
                                "returns a new tensor",
                                described_operator(graph_, n)));
      }
      changed = changed || level > levels_[n];
      levels_[n] = std::max(levels_[n], level);
    };
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      lift(n, level_of(n));
    }
    for (const MemoryGroup& group : memory_groups(graph_)) {
      std::map<int, int> highest;  // by stage
      for (const std::size_t n : group.operators) {
        int& level = highest[stages_.stage_of[n]];
        level = std::max(level, levels_[n]);
      }
      for (const std::size_t n : group.operators) {
        lift(n, fitting(n, highest[stages_.stage_of[n]]));
      }
    }
    return changed;
  }

  StageAssignment parts() {
    std::map<std::pair<int, int>, int> part_of;  // stage, level
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      part_of[{stages_.stage_of[n], levels_[n]}] = 0;
    }
    StageAssignment result;
    std::set<std::string> taken(stages_.names.begin(), stages_.names.end());
    std::map<int, int> computing;  // parts by stage that are not on the driver
    for (auto& [key, number] : part_of) {
      const auto& [stage, level] = key;
      const std::string& stage_name = stages_.names[static_cast<std::size_t>(stage)];
      number = static_cast<int>(result.names.size());
      const bool on_driver = is_on_driver(level);
      result.parts.push_back({StageId(stage), stage_name, on_driver});
      if (on_driver) {
        result.names.push_back(unique(code_in(stage, level), taken));
      } else if (const int count = ++computing[stage]; count == 1) {
        result.names.push_back(stage_name);
      } else {
        result.names.push_back(unique(fmt::format("{}.{}", stage_name, count), taken));
      }
    }
    for (std::size_t s = 0; s < stages_.names.size(); ++s) {
      if (!computing.contains(static_cast<int>(s))) {
        throw Error(Errc::CompilePartition,
                    fmt::format("the stage \"{}\" has code of the driver alone, so its rank would "
                                "do nothing: call it in another stage, or outside of them",
                                stages_.names[s]));
      }
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      result.stage_of.push_back(part_of.at({stages_.stage_of[n], levels_[n]}));
    }
    return result;
  }

  /// Returns the name of the first code in a part.
  [[nodiscard]] std::string code_in(int stage, int level) const {
    std::size_t n = 0;
    while (stages_.stage_of[n] != stage || levels_[n] != level) {
      ++n;
    }
    return given_name(graph_, graph_.nodes[n]);
  }

  static std::string unique(const std::string& name, std::set<std::string>& taken) {
    std::string made = name;
    for (int i = 2; !taken.insert(made).second; ++i) {
      made = fmt::format("{}#{}", name, i);
    }
    return made;
  }

  const Graph& graph_;
  const StageAssignment stages_;
  std::vector<int> levels_;  ///< by operator
  const int most_;           ///< that a level can need
};

}  // namespace

StageAssignment driver_parts(const Graph& graph, StageAssignment stages) {
  if (std::ranges::none_of(graph.nodes, is_driver_code)) {
    return stages;
  }
  return DriverParts(graph, std::move(stages)).run();
}

}  // namespace stagecraft
