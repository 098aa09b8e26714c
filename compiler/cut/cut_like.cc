#include "stagecraft/compiler/cut/cut_like.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/cut/counterparts.h"
#include "stagecraft/compiler/cut/memory_groups.h"
#include "stagecraft/compiler/cut/stage_choice.h"
#include "stagecraft/compiler/graph/operator_paths.h"
#include "stagecraft/compiler/graph/state_paths.h"

namespace stagecraft {
namespace {

/// Returns for each stage the stages that come after it.
std::vector<StageSet> order_of(const StageGraph& graph) {
  const auto count = static_cast<std::size_t>(graph.size());
  std::vector<StageSet> leads_to(count, StageSet(count, false));
  for (std::size_t round = 0; round < count; ++round) {
    for (const auto& [from, to] : graph.edges()) {
      StageSet& of_from = leads_to[static_cast<std::size_t>(from)];
      of_from[static_cast<std::size_t>(to)] = true;
      for (std::size_t s = 0; s < count; ++s) {
        of_from[s] = of_from[s] || leads_to[static_cast<std::size_t>(to)][s];
      }
    }
  }
  return leads_to;
}

class LikeCutter {
 public:
  LikeCutter(const Graph& graph,
             const CompiledProgram& model,
             UnusedTensors unused,
             WrittenMemory written)
      : graph_(graph),
        model_(model),
        unused_(unused),
        group_of_(groups_of(graph, written)),
        choice_(order_of(model.stage_graph), graph.nodes.size()) {}

  LikeCut run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (std::string misfit = place_by_state(n); !misfit.empty()) {
        return {.assignment = {}, .misfit = std::move(misfit)};
      }
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        if (const Value& value = graph_.at(read); value.kind == ValueKind::Computed) {
          choice_.feed(group_of_[static_cast<std::size_t>(value.position)], group_of_[n]);
        }
      }
    }
    if (const std::size_t misfit = choice_.narrow(); misfit < graph_.nodes.size()) {
      return {.assignment = {}, .misfit = no_stage_for(misfit)};
    }
    leave_where_counterparts_are();
    return place_others();
  }

 private:
  /// Returns for each operator the first one of its group.
  static std::vector<std::size_t> groups_of(const Graph& graph, WrittenMemory written) {
    std::vector<std::size_t> parent(graph.nodes.size());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t n) {
      while (parent[n] != n) {
        n = parent[n] = parent[parent[n]];
      }
      return n;
    };
    for (const MemoryGroup& group : memory_groups(graph)) {
      if (group.foreign || written == WrittenMemory::InOneStage) {
        for (const std::size_t n : group.operators) {
          const auto [first, second] = std::minmax({root(n), root(group.operators.front())});
          parent[second] = first;
        }
      }
    }
    std::vector<std::size_t> groups(graph.nodes.size());
    for (std::size_t n = 0; n < groups.size(); ++n) {
      groups[n] = root(n);
    }
    return groups;
  }

  /// Returns the stages that have the parameter or buffer.
  [[nodiscard]] StageSet holders_of(const Value& state) const {
    const auto is_it = [&](const auto& held) { return held.position == state.position; };
    StageSet holders;
    for (const StageProgram& stage : model_.partition.stages) {
      holders.push_back(state.kind == ValueKind::Parameter
                            ? std::ranges::any_of(stage.parameters, is_it)
                            : std::ranges::any_of(stage.buffers, is_it));
    }
    return holders;
  }

  /// Keeps LK-1. Returns the reason if it cannot.
  std::string place_by_state(std::size_t n) {
    const Node& node = graph_.nodes[n];
    const std::size_t group = group_of_[n];
    for (const ValueId read : reads_of(node)) {
      if (const std::string* name = name_of_state(graph_, read)) {
        const StageSet holders = holders_of(graph_.at(read));
        const bool used = std::ranges::any_of(holders, [](bool holds) { return holds; });
        if (!used && unused_ == UnusedTensors::IsRefused) {
          return fmt::format(
              "{} uses {}, which the program does not use", described_operator(graph_, n), *name);
        }
        if (used) {
          choice_.restrict(group, holders);
        }
      }
    }
    if (const std::string name = stage_marker(node); model_.marked && !name.empty()) {
      const StageSet named = stages_named(name);
      if (std::ranges::find(named, true) == named.end()) {
        return fmt::format("the module enters a stage \"{}\", which the program does not have",
                           name);
      }
      choice_.restrict(group, named);
    }
    if (const StageParts& parts = model_.assignment.parts; !parts.empty()) {
      StageSet there;
      for (const StagePart& part : parts) {
        there.push_back(part.on_driver == is_driver_code(node));
      }
      choice_.restrict(group, there);
    }
    return {};
  }

  /// Returns the stages with this name, or the parts of the stage with this name.
  [[nodiscard]] StageSet stages_named(const std::string& name) const {
    StageSet named;
    for (const std::string& one : model_.assignment.names) {
      const StageParts& parts = model_.assignment.parts;
      named.push_back((parts.empty() ? one : parts[named.size()].stage_name) == name);
    }
    return named;
  }

  [[nodiscard]] std::string no_stage_for(std::size_t group) const {
    std::set<std::string> names;
    for (std::size_t n = group; n < graph_.nodes.size(); ++n) {
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        const std::string* name = name_of_state(graph_, read);
        if (group_of_[n] == group && name != nullptr) {
          names.insert(*name);
        }
      }
    }
    return fmt::format(
        "{}{} fits no stage: a stage has the same parameters and buffers as in the program, values "
        "flow between stages in the program's order, and operators that use memory which one of "
        "them writes in place stay together",
        described_operator(graph_, group),
        names.empty() ? "" : fmt::format(" with {}", fmt::join(names, ", ")));
  }

  void leave_where_counterparts_are() {
    const std::vector<int> counterpart = counterparts(graph_, model_.graph);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (counterpart[n] != kNoCounterpart) {
        choice_.decide(group_of_[n],
                       model_.assignment.stage_of[static_cast<std::size_t>(counterpart[n])]);
      }
    }
  }

  /// Puts every other operator into the stage of its operand that is furthest downstream. An
  /// operator without operands comes as late as its readers allow.
  LikeCut place_others() {
    const std::vector<StageId>& order = model_.partition.order;
    LikeCut result{.assignment = {std::vector<int>(graph_.nodes.size(), 0),
                                  model_.assignment.names,
                                  model_.assignment.parts},
                   .misfit = {}};
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const std::size_t group = group_of_[n];
      StageSet fed_by(order.size(), false);
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        const Value& value = graph_.at(read);
        if (value.kind == ValueKind::Computed && value.position < static_cast<int>(n)) {
          fed_by[static_cast<std::size_t>(
              result.assignment.stage_of[static_cast<std::size_t>(value.position)])] = true;
        }
      }
      const auto decided = [&](bool beside_operands) {
        return std::find_if(order.rbegin(), order.rend(), [&](StageId stage) {
                 return (!beside_operands || fed_by[stage.index()]) &&
                        choice_.decide(group, stage.value);
               }) != order.rend();
      };
      if (!decided(true) && !decided(false)) {
        return {.assignment = {}, .misfit = no_stage_for(group)};
      }
      result.assignment.stage_of[n] = choice_.last_open(group);
    }
    return result;
  }

  const Graph& graph_;
  const CompiledProgram& model_;
  const UnusedTensors unused_;
  const std::vector<std::size_t> group_of_;
  StageChoice choice_;
};

}  // namespace

LikeCut cut_like(const Graph& graph,
                 const CompiledProgram& model,
                 UnusedTensors unused,
                 WrittenMemory written) {
  return LikeCutter(graph, model, unused, written).run();
}

}  // namespace stagecraft
