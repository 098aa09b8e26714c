#include "stagecraft/compiler/stage/partition.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/graph/operator_paths.h"
#include "stagecraft/compiler/stage/stage_program_of.h"

namespace stagecraft {
namespace {

constexpr int kUnassigned = -1;

class Partitioner {
 public:
  Partitioner(const Graph& graph,
              const StageAssignment& assignment,
              const std::vector<ValueId>& results)
      : graph_(graph),
        stage_of_(assignment.stage_of),
        names_(assignment.names),
        results_(results) {}

  Partition run() {
    check_parameters();
    check_writes();
    make_stages();
    connect();
    Partition result{std::move(stages_), {}};
    result.order = topological_order(result.stages);
    order_consumers(result);
    return result;
  }

 private:
  [[nodiscard]] int producer_stage(ValueId id) const {
    const Value& value = graph_.at(id);
    return value.kind == ValueKind::Computed ? stage_of_[static_cast<std::size_t>(value.position)]
                                             : kUnassigned;
  }

  [[nodiscard]] std::string describe(std::size_t n) const {
    return fmt::format("{} {}in stage \"{}\"",
                       described_operator(graph_, n),
                       in_loss(graph_.nodes[n]) ? "of the loss, " : "",
                       names_[static_cast<std::size_t>(stage_of_[n])]);
  }

  /// A hook must be called with the whole gradient of a microbatch. If several stages use a
  /// parameter, none of them has its whole gradient.
  void check_parameters() const {
    std::map<ValueId, std::size_t> first_use;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        const Value& value = graph_.at(read);
        if (value.kind != ValueKind::Parameter || value.hooks == kNoAttachment) {
          continue;
        }
        const std::size_t first = first_use.try_emplace(read, n).first->second;
        if (stage_of_[first] != stage_of_[n]) {
          throw Error(
              Errc::CompilePartition,
              fmt::format(
                  "the parameter {} has a hook, and {} and {} use it; a hook sees the whole "
                  "gradient, and each stage has a part of it: cut so that one stage has "
                  "both, or leave the hook out",
                  graph_.parameters[static_cast<std::size_t>(value.position)].name,
                  describe(first),
                  describe(n)));
        }
      }
    }
  }

  /// A write is safe if every other stage that uses the memory reads it later, from the finished
  /// value.
  void check_writes() const {
    std::map<int, std::vector<std::size_t>> touched;  // alias set -> nodes, ascending
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      std::set<int> sets;
      for (const ValueId v : reads_of(graph_.nodes[n])) {
        sets.insert(graph_.at(v).alias_set);
      }
      for (const ValueId v : graph_.nodes[n].results) {
        if (v != kNoValue) {
          sets.insert(graph_.at(v).alias_set);
        }
      }
      for (const int set : sets) {
        touched[set].push_back(n);
      }
    }
    // Alias sets that begin with a tensor that no stage makes: an input, label, parameter, buffer,
    // constant.
    std::set<int> foreign;
    for (const Value& value : graph_.values) {
      if (value.kind != ValueKind::Computed) {
        foreign.insert(value.alias_set);
      }
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId written : graph_.nodes[n].writes) {
        const int set = graph_.at(written).alias_set;
        for (const std::size_t other : touched[set]) {
          if (stage_of_[other] != stage_of_[n] && (other < n || foreign.contains(set))) {
            const bool is_buffer = graph_.at(written).kind == ValueKind::Buffer;
            throw Error(
                Errc::CompilePartition,
                fmt::format("{} writes {} in place, but {} also uses its memory; stages share no "
                            "memory: {}",
                            describe(n),
                            value_name(graph_, written),
                            describe(other),
                            is_buffer ? "use a module with buffers, for example a batch norm, in "
                                        "one stage only, and give each other stage one of its own"
                                      : "use the operator that returns a new tensor"));
          }
        }
      }
    }
  }

  void make_stages() {
    for (std::size_t s = 0; s < names_.size(); ++s) {
      stages_.push_back({.id = StageId(s), .name = names_[s]});
    }
    nodes_.resize(stages_.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      nodes_[static_cast<std::size_t>(stage_of_[n])].push_back(graph_.nodes[n]);
    }
  }

  void connect() {
    std::map<ValueId, std::set<StageId>> crossing;
    for (StageProgram& stage : stages_) {
      std::set<ValueId> seen;
      for (const Node& node : nodes_[stage.id.index()]) {
        for (const ValueId read : reads_of(node)) {
          if (seen.insert(read).second) {
            add_input(stage, read, crossing);
          }
        }
      }
    }
    for (const ValueId result : results_) {
      crossing[result];  // makes an entry, even if no stage reads it
    }
    for (const auto& [value, consumers] : crossing) {
      StageOutput output{value, {consumers.begin(), consumers.end()}, {}};
      output.gradient_from.assign(consumers.size(), false);
      stages_[static_cast<std::size_t>(producer_stage(value))].outputs.push_back(std::move(output));
    }
    for (StageProgram& stage : stages_) {
      complete_from(graph_, std::move(nodes_[stage.id.index()]), stage);
    }
  }

  /// Does nothing for a value that the stage makes itself.
  void add_input(StageProgram& stage,
                 ValueId read,
                 std::map<ValueId, std::set<StageId>>& crossing) const {
    const Value& value = graph_.at(read);
    if (value.kind == ValueKind::Input || value.kind == ValueKind::Label) {
      const auto source =
          value.kind == ValueKind::Input ? StageInput::Source::Model : StageInput::Source::Label;
      stage.inputs.push_back({source, value.position, read});
    } else if (value.kind == ValueKind::Computed && producer_stage(read) != stage.id.value) {
      stage.inputs.push_back({StageInput::Source::Stage, 0, read, StageId(producer_stage(read))});
      crossing[read].insert(stage.id);
    }
  }

  [[noreturn]] static void refuse_circle(const std::vector<StageProgram>& stages,
                                         const std::vector<bool>& done) {
    std::vector<std::string> names;
    for (const StageProgram& stage : stages) {
      if (!done[stage.id.index()]) {
        names.push_back(fmt::format("\"{}\"", stage.name));
      }
    }
    throw Error(Errc::CompilePartition,
                fmt::format("some of the stages {} feed each other in a circle, so none of these "
                            "can run first; move the operators of a circle into one stage",
                            fmt::join(names, ", ")));
  }

  static std::vector<StageId> topological_order(const std::vector<StageProgram>& stages) {
    std::vector<std::set<StageId>> waits(stages.size());
    for (const StageProgram& stage : stages) {
      for (const StageInput& input : stage.inputs) {
        if (input.source == StageInput::Source::Stage) {
          waits[stage.id.index()].insert(input.from);
        }
      }
    }
    std::vector<StageId> order;
    std::vector<bool> done(stages.size(), false);
    const auto ready = [&](std::size_t s) {
      return !done[s] && std::ranges::all_of(waits[s], [&](StageId w) { return done[w.index()]; });
    };
    while (order.size() < stages.size()) {
      std::size_t next = 0;
      while (next < stages.size() && !ready(next)) {
        ++next;
      }
      if (next == stages.size()) {
        refuse_circle(stages, done);
      }
      done[next] = true;
      order.emplace_back(next);
    }
    return order;
  }

  /// Keeps the order of creation: gradients of a value are summed latest-created consumer first.
  static void order_consumers(Partition& result) {
    std::vector<std::size_t> place(result.order.size());
    for (std::size_t i = 0; i < result.order.size(); ++i) {
      place[result.order[i].index()] = i;
    }
    for (StageProgram& stage : result.stages) {
      for (StageOutput& output : stage.outputs) {
        std::ranges::sort(output.consumers, {}, [&](StageId s) { return place[s.index()]; });
      }
    }
  }

  const Graph& graph_;
  const std::vector<int>& stage_of_;
  const std::vector<std::string>& names_;
  const std::vector<ValueId>& results_;
  std::vector<std::vector<Node>> nodes_;  // per stage
  std::vector<StageProgram> stages_;
};

}  // namespace

Partition partition(const Graph& graph,
                    const StageAssignment& assignment,
                    const std::vector<ValueId>& results) {
  return Partitioner(graph, assignment, results).run();
}

StageProgram whole_program(const Graph& graph) {
  StageProgram program{.id = StageId(0), .name = "whole"};
  const auto add_inputs = [&](const std::vector<ValueId>& ids, StageInput::Source source) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      program.inputs.push_back({source, static_cast<int>(i), ids[i]});
    }
  };
  add_inputs(graph.inputs, StageInput::Source::Model);
  add_inputs(graph.labels, StageInput::Source::Label);
  for (const auto* made : {&graph.outputs, &graph.metrics}) {
    for (const ValueId output : *made) {
      program.outputs.push_back({output, {}, {}});
    }
  }
  complete_from(graph, graph.nodes, program);
  return program;
}

}  // namespace stagecraft
