#include "stagecraft/compiler/training/dag.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/ties.h"

namespace stagecraft {
namespace {

constexpr StageId kNoStage{-1};
constexpr EdgeId kLocal{-1};

bool is_backward(CellKind kind) {
  return kind == CellKind::Backward || kind == CellKind::BackwardInput;
}

std::vector<PlanEdge> crossing_tensors(const CompiledProgram& program) {
  std::vector<PlanEdge> tensors;
  const auto add = [&](ValueId value, Role role, StageId from, StageId to) {
    tensors.push_back({EdgeId(tensors.size()), value, role, from, to});
  };
  for (const StageProgram& stage : program.partition.stages) {
    for (const StageInput& input : stage.inputs) {
      add(input.value,
          Role::Activation,
          input.source == StageInput::Source::Stage ? input.from : kNoStage,
          stage.id);
    }
  }
  for (const StageProgram& stage : program.partition.stages) {
    for (const StageInput& input : stage.inputs) {
      if (input.owes_gradient) {
        add(input.value, Role::Gradient, stage.id, input.from);
      }
    }
  }
  if (program.evaluates != nullptr) {
    const std::vector<ValueId>& results = results_of(program.graph);
    for (const StageProgram& stage : program.partition.stages) {
      for (const StageOutput& output : stage.outputs) {
        if (std::ranges::find(results, output.value) != results.end()) {
          add(output.value, Role::Activation, stage.id, kNoStage);
        }
      }
    }
  }
  return tensors;
}

class Builder {
 public:
  Builder(const CompiledProgram& program, const Schedule& schedule, bool training)
      : program_(program) {
    dag_.microbatches = program.microbatches;
    dag_.losses = losses_of(program);
    dag_.training = training;
    dag_.tensors = crossing_tensors(program);
    for (const auto& row : schedule.rows()) {
      for (const Cell& cell : row) {
        for (const Task& task : cell.tasks()) {
          if (task.kind == CellKind::Forward || (training && task.kind != CellKind::Update)) {
            node_of_[task] = static_cast<int>(dag_.nodes.size());
            dag_.nodes.push_back({.kind = StepNodeKind::Compute, .task = task});
          }
        }
      }
    }
  }

  StepDag build() {
    for (const PlanEdge& tensor : dag_.tensors) {
      dag_.driver_parts.push_back(driver_parts_of(tensor));
      if (tensor.from == kNoStage || tensor.to == kNoStage) {
        continue;  // transfers with the driver are added when ranks are known
      }
      const int share = program_.stage_graph.microbatches_of(tensor.from, dag_.microbatches);
      const int first = program_.stage_graph.replica_of(tensor.to) * share;
      for (int m = first; m < first + share; ++m) {
        connect(tensor, Microbatch(m));
      }
    }
    for (const auto& [task, node] : node_of_) {
      if (is_backward(task.kind)) {
        add_edge(node_of_.at({CellKind::Forward, task.stage, task.microbatch}), node, kLocal);
      } else if (task.kind == CellKind::BackwardWeight) {
        add_edge(node_of_.at({CellKind::BackwardInput, task.stage, task.microbatch}), node, kLocal);
      }
    }
    if (dag_.training) {
      add_updates();
      add_replica_groups();
      dag_.ties = ties_of(program_);
    }
    return std::move(dag_);
  }

 private:
  void add_edge(int from,
                int to,
                EdgeId tensor,
                std::optional<MicrobatchRange> part = std::nullopt) {
    dag_.edges.push_back({from, to, true, tensor, part});
  }

  /// Returns how many tensors of the driver make one for the stage. It is 1 for a tensor that every
  /// microbatch gets whole.
  [[nodiscard]] int driver_parts_of(const PlanEdge& tensor) const {
    if (tensor.from != kNoStage) {
      return 1;
    }
    const StageProgram& stage = program_.partition.stages[tensor.to.index()];
    const StageInput& input = *std::ranges::find(stage.inputs, tensor.value, &StageInput::value);
    const bool label = input.source == StageInput::Source::Label;
    const BatchSlice& slice =
        (label ? program_.labels : program_.inputs)[static_cast<std::size_t>(input.position)];
    return slice.replicated ? 1 : program_.stage_graph.microbatch_size(tensor.to);
  }

  /// Returns the node that makes or reads a stage's side of a tensor; -1 if the schedule does not
  /// run it. For a split backward it is I, or W if that does all.
  [[nodiscard]] int find(StageId stage, Microbatch m, bool backward) const {
    for (const CellKind kind :
         {CellKind::Backward, CellKind::BackwardInput, CellKind::BackwardWeight}) {
      const Task task{backward ? kind : CellKind::Forward, stage, m};
      const auto found = node_of_.find(task);
      if (found != node_of_.end() && !program_.stage_graph.is_surplus(task)) {
        return found->second;
      }
    }
    return -1;
  }

  /// `m`: the microbatch of the stage that the tensor is from.
  void connect(const PlanEdge& tensor, Microbatch m) {
    const bool backward = tensor.role == Role::Gradient;
    if (backward && !dag_.training) {
      return;
    }
    const int size = program_.stage_graph.microbatch_size(tensor.from);
    const int other = program_.stage_graph.microbatch_size(tensor.to);
    const auto [begin, end] = overlapping(m, size, other);
    for (Microbatch reader(begin); reader.value < end; ++reader.value) {
      const int from = find(tensor.from, m, backward);
      const int to = find(tensor.to, reader, backward);
      SC_CHECK(from >= 0 && to >= 0,
               "a validated schedule runs every forward and every backward that is owed");
      add_edge(from,
               to,
               tensor.id,
               size == other ? std::nullopt
                             : std::optional(shared(in_step(m, size), in_step(reader, other))));
    }
  }

  void add_updates() {
    std::map<StageId, int> update_of;
    for (const StageProgram& stage : program_.partition.stages) {
      if (stage.trains()) {
        update_of[stage.id] = static_cast<int>(dag_.nodes.size());
        dag_.nodes.push_back(
            {.kind = StepNodeKind::Update, .task = {CellKind::Update, stage.id, Microbatch(0)}});
      }
    }
    for (const auto& [task, node] : node_of_) {
      const auto update = update_of.find(task.stage);
      const bool makes_gradients =
          task.kind == CellKind::Backward || task.kind == CellKind::BackwardWeight;
      if (update != update_of.end() && makes_gradients) {
        dag_.edges.push_back({node, update->second, false});
      }
    }
  }

  void add_replica_groups() {
    std::map<StageId, std::size_t> group_of;
    for (const auto& [first, second] : program_.stage_graph.replica_pairs()) {
      const StageProgram& stage = program_.partition.stages[static_cast<std::size_t>(first)];
      if (!stage.trains() && std::ranges::none_of(stage.buffers, &StageBuffer::written)) {
        continue;  // nothing changes in this stage
      }
      const auto [entry, added] = group_of.try_emplace(StageId(first), dag_.replica_groups.size());
      if (added) {
        dag_.replica_groups.push_back({.stages = {StageId(first)}});
      }
      dag_.replica_groups[entry->second].stages.emplace_back(second);
      group_of.emplace(StageId(second), entry->second);
    }
  }

  const CompiledProgram& program_;
  StepDag dag_;
  std::map<Task, int> node_of_;
};

/// Adds a Receive from the driver for every model input and label, on the rank of the stage that
/// reads it, and a Send to the driver for every result of an evaluation, on the rank of the stage
/// that makes it.
void add_driver(StepDag& dag) {
  const std::size_t compute_nodes = dag.nodes.size();
  for (std::size_t n = 0; n < compute_nodes; ++n) {
    const StepNode node = dag.nodes[n];
    if (node.kind != StepNodeKind::Compute || node.task.kind != CellKind::Forward) {
      continue;
    }
    for (const PlanEdge& tensor : dag.tensors) {
      if (tensor.from == kNoStage && tensor.to == node.task.stage) {
        const int parts = dag.driver_parts[tensor.id.index()];
        const auto [begin, end] = in_step(node.task.microbatch, parts);
        for (int m = begin; m < end; ++m) {
          const auto part = parts == 1 ? std::nullopt : std::optional(MicrobatchRange{m, m + 1});
          dag.edges.push_back(
              {static_cast<int>(dag.nodes.size()), static_cast<int>(n), true, tensor.id, part});
          dag.nodes.push_back({.kind = StepNodeKind::Receive,
                               .task = node.task,
                               .rank = node.rank,
                               .edge = tensor.id,
                               .peer = kDriver,
                               .part = part});
        }
      } else if (tensor.to == kNoStage && tensor.from == node.task.stage) {
        dag.edges.push_back(
            {static_cast<int>(n), static_cast<int>(dag.nodes.size()), true, tensor.id});
        dag.nodes.push_back({.kind = StepNodeKind::Send,
                             .task = node.task,
                             .rank = node.rank,
                             .edge = tensor.id,
                             .peer = kDriver});
      }
    }
  }
}

/// Keeps P-7: adds after every task of the rank the sums over replicas, then those over ties, both
/// in ascending order.
void add_reductions(StepDag& dag, const std::vector<Rank>& rank_of_stage) {
  std::map<Rank, std::vector<int>> last_of;
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    if (dag.nodes[n].kind == StepNodeKind::Compute) {
      last_of[*dag.nodes[n].rank].push_back(static_cast<int>(n));
    }
  }
  const auto add = [&](StepNodeKind kind, std::size_t group, const std::vector<Rank>& ranks) {
    for (const Rank rank : ranks) {
      const int self = static_cast<int>(dag.nodes.size());
      dag.nodes.push_back({.kind = kind, .rank = rank, .group = static_cast<int>(group)});
      for (const int before : last_of[rank]) {
        dag.edges.push_back({before, self, false});
      }
      last_of[rank] = {self};
    }
  };
  for (std::size_t g = 0; g < dag.replica_groups.size(); ++g) {
    ReplicaGroup& group = dag.replica_groups[g];
    std::set<Rank> ranks;
    for (const StageId stage : group.stages) {
      ranks.insert(rank_of_stage[stage.index()]);
    }
    group.ranks.assign(ranks.begin(), ranks.end());
    add(StepNodeKind::Reduce, g, group.ranks);
  }
  for (std::size_t t = 0; t < dag.ties.size(); ++t) {
    for (const StageId stage : dag.ties[t].stages) {
      dag.ties[t].ranks.push_back(rank_of_stage[stage.index()]);
    }
    add(StepNodeKind::Tie, t, dag.ties[t].members());
  }
}

void add_votes(StepDag& dag) {
  std::map<Rank, int> vote_of;
  const std::size_t before = dag.nodes.size();
  for (std::size_t n = 0; n < before; ++n) {
    const StepNode node = dag.nodes[n];
    if (node.kind == StepNodeKind::Send || node.kind == StepNodeKind::Receive) {
      continue;
    }
    const auto [entry, added] = vote_of.try_emplace(*node.rank, static_cast<int>(dag.nodes.size()));
    if (added) {
      dag.nodes.push_back({.kind = StepNodeKind::Vote, .rank = node.rank});
    }
    const int self = static_cast<int>(n);
    dag.edges.push_back(node.kind == StepNodeKind::Update ? StepEdge{entry->second, self, false}
                                                          : StepEdge{self, entry->second, false});
  }
}

}  // namespace

StepDag build_training_dag(const CompiledProgram& program,
                           const Schedule& schedule,
                           bool training) {
  return Builder(program, schedule, training).build();
}

void place(StepDag& dag, const std::vector<Rank>& rank_of_stage) {
  for (StepNode& node : dag.nodes) {
    node.rank = rank_of_stage[node.task.stage.index()];
  }
  std::vector<StepEdge> placed;
  for (const StepEdge& edge : dag.edges) {
    const StepNode from = dag.nodes[static_cast<std::size_t>(edge.from)];
    const StepNode to = dag.nodes[static_cast<std::size_t>(edge.to)];
    if (edge.edge == kLocal || from.rank == to.rank) {
      SC_CHECK(!edge.part, "check() lets no stages of different sizes feed each other on one rank");
      placed.push_back(edge);
      continue;
    }
    const int send = static_cast<int>(dag.nodes.size());  // keeps D-1
    dag.nodes.push_back({.kind = StepNodeKind::Send,
                         .task = from.task,
                         .rank = from.rank,
                         .edge = edge.edge,
                         .peer = *to.rank,
                         .part = edge.part});
    dag.nodes.push_back({.kind = StepNodeKind::Receive,
                         .task = to.task,
                         .rank = to.rank,
                         .edge = edge.edge,
                         .peer = *from.rank,
                         .part = edge.part});
    placed.push_back({edge.from, send, true, edge.edge, edge.part});
    placed.push_back({send + 1, edge.to, true, edge.edge, edge.part});
  }
  dag.edges = std::move(placed);
  add_driver(dag);
  if (dag.training) {
    add_reductions(dag, rank_of_stage);
    add_votes(dag);
  }
}

void order(StepDag& dag, const Schedule& schedule) {
  std::map<Task, int> node_of;
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    if (dag.nodes[n].kind == StepNodeKind::Compute) {
      node_of[dag.nodes[n].task] = static_cast<int>(n);
    }
  }
  for (const auto& row : schedule.rows()) {
    int before = -1;
    int groups = 0;
    for (const Cell& cell : row) {
      const int overlap = cell.tasks().size() > 1 ? groups++ : -1;
      for (const Task& task : cell.tasks()) {
        const auto node = node_of.find(task);
        if (node == node_of.end()) {
          continue;  // a backward in a forward-only plan, or an explicit update
        }
        if (before >= 0) {
          dag.edges.push_back({before, node->second, false});
        }
        dag.nodes[static_cast<std::size_t>(node->second)].overlap = overlap;
        before = node->second;
      }
    }
  }
}

std::string StepDag::text() const {
  constexpr std::array kNames{"compute", "send", "receive", "reduce", "tie", "vote", "update"};
  std::string text;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const StepNode& node = nodes[n];
    const bool transfer = node.kind == StepNodeKind::Send || node.kind == StepNodeKind::Receive;
    text += fmt::format("n{} {} {}{}{}\n",
                        n,
                        kNames[static_cast<std::size_t>(node.kind)],
                        node.kind == StepNodeKind::Vote ? std::string()
                        : node.group >= 0               ? fmt::format("group {}", node.group)
                                                        : to_string(node.task),
                        node.rank ? fmt::format(" on rank {}", node.rank->value) : std::string(),
                        transfer ? fmt::format(" edge {} peer {}", node.edge.value, node.peer.value)
                                 : std::string());
  }
  for (const StepEdge& edge : edges) {
    text += fmt::format("n{} {} n{}\n", edge.from, edge.data ? "->" : "..>", edge.to);
  }
  return text;
}

}  // namespace stagecraft
