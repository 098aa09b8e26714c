#include "stagecraft/compiler/partition.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/stage_program_of.h"

namespace stagecraft {
namespace {

constexpr int kUnassigned = -1;

/// How far downstream each stage is: the edges on the longest way that leads to it.
class StageDepths {
 public:
  explicit StageDepths(std::size_t stages) : fed_by_(stages), depth_(stages, 0) {}

  /// The deepest of them; of equally deep ones the last entered.
  [[nodiscard]] int furthest(const std::set<int>& stages) const {
    return *std::ranges::max_element(stages, {}, [this](int s) { return std::pair(depth(s), s); });
  }

  /// The least deep of them; of equally deep ones the first entered.
  [[nodiscard]] int nearest(const std::set<int>& stages) const {
    return *std::ranges::min_element(stages, {}, [this](int s) { return std::pair(depth(s), s); });
  }

  void feed(const std::set<int>& from, int to) {
    for (const int s : from) {
      if (s != to && fed_by_[static_cast<std::size_t>(to)].insert(s).second) {
        deepen(to, depth(s) + 1);
      }
    }
  }

 private:
  [[nodiscard]] int depth(int stage) const { return depth_[static_cast<std::size_t>(stage)]; }

  /// Ends, because there is no cycle: among marked nodes data flows from stages entered earlier, an
  /// edge that furthest() adds ends at the deepest stage, and one that nearest() adds begins at the
  /// least deep.
  void deepen(int stage, int least) {
    if (depth(stage) >= least) {
      return;
    }
    depth_[static_cast<std::size_t>(stage)] = least;
    for (std::size_t s = 0; s < fed_by_.size(); ++s) {
      if (fed_by_[s].contains(stage)) {
        deepen(static_cast<int>(s), least + 1);
      }
    }
  }

  std::vector<std::set<int>> fed_by_;
  std::vector<int> depth_;
};

class Partitioner {
 public:
  explicit Partitioner(const Graph& graph)
      : graph_(graph), stage_of_(graph.nodes.size(), kUnassigned) {}

  Partition run() {
    assign_marked();
    StageDepths depths = depths_of_marked();
    assign_by_operand(depths);
    assign_by_reader(depths);
    // What nobody reads still runs (it may write): beside what it reads, or else with the first
    // stage.
    assign_by_operand(depths);
    std::ranges::replace(stage_of_, kUnassigned, 0);
    check_parameters();
    check_writes();
    make_stages();
    connect();
    Partition result{std::move(stages_), {}, stage_of_};
    result.order = topological_order(result.stages);
    order_consumers(result);
    return result;
  }

 private:
  void assign_marked() {
    std::map<int, std::string> names;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const Annotation& a : graph_.nodes[n].annotations) {
        if (a.tag == kStageTag) {
          stage_of_[n] = a.index;
          names[a.index] = a.name;
        }
      }
    }
    // A marker around nothing but constants leaves no operator and so no stage: the others are
    // numbered without it.
    std::map<int, int> dense;
    for (const auto& [index, name] : names) {
      dense[index] = static_cast<int>(names_.size());
      names_.push_back(name);
    }
    for (int& s : stage_of_) {
      s = s == kUnassigned ? s : dense.at(s);
    }
    if (names_.empty()) {
      names_.emplace_back("main");
      std::fill(stage_of_.begin(), stage_of_.end(), 0);
    }
  }

  [[nodiscard]] int producer_stage(ValueId id) const {
    const Value& value = graph_.at(id);
    return value.kind == ValueKind::Computed ? stage_of_[static_cast<std::size_t>(value.position)]
                                             : kUnassigned;
  }

  /// The stages of the unmarked node's operands: their own, and of unmarked operands those of
  /// theirs.
  [[nodiscard]] std::set<int> origins_of(std::size_t n,
                                         const std::vector<std::set<int>>& origins) const {
    std::set<int> all;
    for (const ValueId read : reads_of(graph_.nodes[n])) {
      if (producer_stage(read) != kUnassigned) {
        all.insert(producer_stage(read));
      } else if (graph_.at(read).kind == ValueKind::Computed) {
        const std::set<int>& more = origins[static_cast<std::size_t>(graph_.at(read).position)];
        all.insert(more.begin(), more.end());
      }
    }
    return all;
  }

  /// What the markers alone say of who feeds whom.
  [[nodiscard]] StageDepths depths_of_marked() const {
    StageDepths depths(names_.size());
    std::vector<std::set<int>> origins(graph_.nodes.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      origins[n] = origins_of(n, origins);
      if (stage_of_[n] != kUnassigned) {
        depths.feed(origins[n], stage_of_[n]);
      }
    }
    return depths;
  }

  /// With the operand furthest downstream, not with the one made last: C++ leaves open in which
  /// order the operands of a sum are made.
  void assign_by_operand(StageDepths& depths) {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      std::set<int> stages;
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        if (producer_stage(read) != kUnassigned) {
          stages.insert(producer_stage(read));
        }
      }
      if (stage_of_[n] == kUnassigned && !stages.empty()) {
        stage_of_[n] = depths.furthest(stages);
        depths.feed(stages, stage_of_[n]);
      }
    }
  }

  /// With the reader least far downstream: whatever the order of the readers, the value then flows
  /// down to the others.
  void assign_by_reader(StageDepths& depths) {
    // For each value, the stages of the nodes behind n that read it; filled from the last node
    // back.
    std::map<ValueId, std::set<int>> readers;
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      std::set<int> stages;
      for (const ValueId result : node.results) {
        const auto found = readers.find(result);
        if (found != readers.end()) {
          stages.insert(found->second.begin(), found->second.end());
        }
      }
      if (stage_of_[n] == kUnassigned && !stages.empty()) {
        stage_of_[n] = depths.nearest(stages);
        for (const int s : stages) {
          depths.feed({stage_of_[n]}, s);
        }
      }
      for (const ValueId read : reads_of(node)) {
        if (stage_of_[n] != kUnassigned) {
          readers[read].insert(stage_of_[n]);
        }
      }
    }
  }

  [[nodiscard]] std::string describe(std::size_t n) const {
    return fmt::format("{} {}in stage \"{}\"",
                       operator_name(graph_.nodes[n]),
                       in_loss(graph_.nodes[n]) ? "of the loss, " : "",
                       names_[static_cast<std::size_t>(stage_of_[n])]);
  }

  void check_parameters() const {
    std::map<int, int> owner;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        if (graph_.at(read).kind != ValueKind::Parameter) {
          continue;
        }
        const auto [entry, added] = owner.try_emplace(graph_.at(read).position, stage_of_[n]);
        if (!added && entry->second != stage_of_[n]) {
          throw Error(
              Errc::CompilePartition,
              fmt::format(
                  "V33: the parameter {} is used in stage \"{}\" and in stage \"{}\"; a parameter "
                  "belongs to "
                  "one stage: move the marker so that one stage holds both uses, or give each its "
                  "own parameter",
                  graph_.parameters[static_cast<std::size_t>(graph_.at(read).position)].name,
                  names_[static_cast<std::size_t>(entry->second)],
                  names_[static_cast<std::size_t>(stage_of_[n])]));
        }
      }
    }
  }

  /// A write is safe when every other stage that touches the memory reads it later, from the
  /// finished value.
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
    // Alias sets that begin with a tensor of no stage: an input, label, parameter, buffer,
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
            throw Error(Errc::CompilePartition,
                        fmt::format("{} writes {} in place, but {} also uses its memory; stages "
                                    "share no memory: use the "
                                    "operator that returns a new tensor",
                                    describe(n),
                                    value_name(graph_, written),
                                    describe(other)));
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
    for (const auto& [value, consumers] : crossing) {
      StageOutput output{value, {consumers.begin(), consumers.end()}, {}};
      output.gradient_from.assign(consumers.size(), false);
      stages_[static_cast<std::size_t>(producer_stage(value))].outputs.push_back(std::move(output));
    }
    for (StageProgram& stage : stages_) {
      complete_from(graph_, std::move(nodes_[stage.id.index()]), stage);
    }
  }

  /// Nothing to do for what the stage has itself.
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
      SC_CHECK(next < stages.size(),
               "stages are fed by stages entered before, or by less deep ones");
      done[next] = true;
      order.emplace_back(next);
    }
    return order;
  }

  /// Gradients of a value are summed latest-created consumer first: the order of creation is kept
  /// here.
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
  std::vector<int> stage_of_;  // per node
  std::vector<std::string> names_;
  std::vector<std::vector<Node>> nodes_;  // per stage
  std::vector<StageProgram> stages_;
};

}  // namespace

Partition partition(const Graph& graph) {
  return Partitioner(graph).run();
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
  for (const ValueId output : graph.outputs) {
    program.outputs.push_back({output, {}, {}});
  }
  complete_from(graph, graph.nodes, program);
  return program;
}

}  // namespace stagecraft
