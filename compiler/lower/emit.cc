#include "stagecraft/compiler/lower/emit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "stagecraft/compiler/lower/task_runs.h"
#include "stagecraft/compiler/lower/transfers.h"

namespace stagecraft {
namespace {

CollectiveKind collective_kind(DagKind kind) {
  switch (kind) {
    case DagKind::ReduceScatter:
      return CollectiveKind::ReduceScatter;
    case DagKind::AllGather:
      return CollectiveKind::AllGather;
    case DagKind::AllToAll:
      return CollectiveKind::AllToAll;
    default:
      return CollectiveKind::AllReduce;
  }
}

class Emission {
 public:
  Emission(const EmitInput& in, int place, const std::vector<int>& nodes)
      : in_(in),
        nodes_(nodes),
        units_(in.units / static_cast<int>(in.dag.places[static_cast<std::size_t>(place)].size())),
        runs_(in, nodes, units_),
        facts_(in),
        list_(in.dag.streams),
        transfers_(in, nodes, runs_, facts_, list_),
        emitted_(nodes.size(), false) {}

  EmittedList run() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const DagNode& node = node_at(i);
      finish_needed(nodes_[i]);
      if (computes(node.kind)) {
        emit_compute(i);
      } else if (is_transfer(node.kind)) {
        const bool now = !transfers_.is_emitted(i) && !runs_.is_in_block(i);
        for (int unit = 0; now && unit < units_; ++unit) {
          transfers_.emit_transfer(nodes_[i], unit);
        }
      } else if (node.kind == DagKind::Vote) {
        list_.emit(kCompute, Op::Vote);
      } else if (node.kind == DagKind::Update) {
        Instruction& update = list_.emit(kCompute, Op::Update);
        update.task = {CellKind::Update, node.stage, Microbatch(0)};
        update.bucket = node.bucket;
      } else {
        emit_start(nodes_[i], node);
      }
    }
    // These gather weights, which the next step uses.
    for (const auto& [n, start] : unfinished_) {
      emit_finish(start);
    }
    return std::move(list_).take();
  }

 private:
  [[nodiscard]] const DagNode& node_at(std::size_t i) const { return in_.dag.node(nodes_[i]); }

  /// Returns whether a node is of no use: the row does not name its task, which does nothing.
  [[nodiscard]] bool is_skipped(const DagNode& node) const {
    return in_.dag.is_surplus(node) && !node.ordered;
  }

  /// Emits the run that begins at position `i`. The other tasks of its overlap group follow, and
  /// all units of the list (EM-2), each as a block: receives, run, sends.
  void emit_compute(std::size_t i) {
    if (emitted_[i]) {
      return;
    }
    const int group = node_at(i).overlap;
    if (!runs_.is_loose(group)) {
      emit_block(runs_.of(i), -1);
      return;
    }
    finish_for_group(i);
    const int overlap = groups_++;
    for (std::size_t j = i; j < nodes_.size(); ++j) {
      if (computes(node_at(j).kind) && node_at(j).overlap == group && !emitted_[j]) {
        emit_block(runs_.of(j), overlap);
      } else if (computes(node_at(j).kind) && node_at(j).overlap != group) {
        break;
      }
    }
  }

  /// Ends the collectives that any task of the overlap group needs: none is ended inside of it.
  void finish_for_group(std::size_t i) {
    const int group = node_at(i).overlap;
    for (std::size_t j = i; j < nodes_.size(); ++j) {
      if (computes(node_at(j).kind) && node_at(j).overlap != group) {
        break;
      }
      if (computes(node_at(j).kind)) {
        finish_needed(nodes_[j]);
      }
    }
  }

  void emit_block(const TaskRuns::Run& run, int overlap) {
    const DagNode& node = node_at(run.nodes.front());
    for (const std::size_t i : run.nodes) {
      emitted_[i] = true;
    }
    if (is_skipped(node)) {
      return;
    }
    list_.add_stage(node.stage);
    const bool with_sends = units_ > 1 || overlap >= 0;
    for (int unit = 0; unit < units_; ++unit) {
      const std::size_t first = list_.size();
      transfers_.emit_inputs(run, unit);
      emit_run(run, unit);
      transfers_.emit_results(run, unit);
      if (with_sends) {
        transfers_.emit_sends(run, unit);
      }
      list_.set_overlap(first, overlap);
    }
  }

  void emit_run(const TaskRuns::Run& of, int unit) {
    const DagNode& node = node_at(of.nodes.front());
    Instruction& run = list_.emit(kCompute, Op::Run);
    run.task = in_.task_in(node, unit);
    run.chunks = of.chunks;
    if (in_.dag.is_surplus(node)) {
      return;  // P-8
    }
    for (const std::size_t i : of.nodes) {
      for (const int e : in_.edges.incoming(nodes_[i])) {
        const DagEdge& edge = in_.edge(e);
        if (edge.data && edge.tensor.value >= 0) {
          const bool received = in_.dag.node(edge.from).kind == DagKind::Receive;
          list_.read_once(run, key_of(in_.tensor(edge.tensor), run.task.microbatch, received));
        }
      }
    }
    if (node.kind == DagKind::Forward) {
      add_forward_values(run);
    } else {
      add_backward_values(run);
    }
  }

  [[nodiscard]] static ValueKey saved_by(const Task& task) {
    return {kNoValue, Role::Saved, task.stage, task.microbatch};
  }

  void add_forward_values(Instruction& run) {
    const StageProgram& stage = in_.program_of(run.task.stage);
    const ChunkFacts& facts = facts_.of(run.task.stage);
    for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
      const StageInput& input = stage.inputs[i];
      if (input.source != StageInput::Source::Stage && run.chunks.has(facts.first_reader[i])) {
        const EdgeId of = transfers_.feed_edge(run.task.stage, input.value);
        list_.read_once(run, key_of(in_.tensor(of), run.task.microbatch, true));
      }
    }
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
      if (run.chunks.has(facts.maker[i])) {
        list_.write(
            run, {stage.outputs[i].value, Role::Activation, run.task.stage, run.task.microbatch});
      }
    }
    const bool whole = run.chunks.count == static_cast<int>(stage.chunks.size());
    const bool keeps = in_.dag.training && in_.source.dag.graph.has_backward(run.task.stage);
    if (keeps || !whole) {
      if (run.chunks.first == 0) {
        list_.write(run, saved_by(run.task));
      } else {
        list_.read(run, saved_by(run.task));
      }
    }
  }

  /// Also emits the sum of the gradients of parameters, if the run makes them.
  void add_backward_values(Instruction& run) {
    const Task task = run.task;
    const ChunkRange chunks = run.chunks;
    const StageProgram& stage = in_.program_of(task.stage);
    const ChunkFacts& facts = facts_.of(task.stage);
    list_.read(run, saved_by(task));
    if (task.kind != CellKind::BackwardWeight) {
      for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
        if (stage.inputs[i].owes_gradient && chunks.has(facts.first_reader[i])) {
          list_.write(run, {stage.inputs[i].value, Role::Gradient, task.stage, task.microbatch});
        }
      }
    }
    const auto begin = facts.trains.begin();
    const bool trains =
        std::find(begin + chunks.first, begin + chunks.end(), true) != begin + chunks.end();
    if (task.kind != CellKind::BackwardInput && trains) {
      const ValueKey gradients{
          kNoValue, Role::ParameterGradient, task.stage, task.microbatch, chunks.first};
      list_.write(run, gradients);
      Instruction& accumulate = list_.emit(kCompute, Op::Accumulate);
      accumulate.task = task;
      accumulate.chunks = chunks;
      list_.read(accumulate, gradients);
    }
  }

  void emit_start(int n, const DagNode& node) {
    Instruction& start = list_.emit(list_.stream(node.stream), Op::Start);
    const bool tie = node.tie != kNone;
    start.collective = tie ? CollectiveKind::AllGather : collective_kind(node.kind);
    const std::vector<int>& groups =
        node.kind == DagKind::AllToAll ? in_.exchange_of_bucket : in_.group_of_bucket;
    start.group = tie ? in_.group_of_tie[static_cast<std::size_t>(node.tie)]
                      : groups[static_cast<std::size_t>(node.bucket)];
    if (start.collective != CollectiveKind::AllReduce && !tie) {
      start.round = rounds_[{start.group, start.collective}]++;
    }
    if (is_exchange(start)) {
      DagNode task = node;
      task.kind = *node.serves;
      start.task = in_.task_in(task, 0);
      start.chunks = {node.chunk, 1};
      start.returns = node.returns;
    }
    const Instruction& known = unfinished_.emplace(n, start).first->second;
    read_exchanged(start, known);
  }

  /// Lets an exchange read the values that a task saves: those between chunks are among them.
  void read_exchanged(Instruction& to, const Instruction& start) {
    if (is_exchange(start)) {
      list_.read(to, saved_by(start.task));
    }
  }

  /// Ends the collectives whose results the node needs.
  void finish_needed(int n) {
    if (unfinished_.empty()) {
      return;
    }
    for (const int e : in_.edges.incoming(n)) {
      const auto found = unfinished_.find(in_.edge(e).from);
      // Nodes of one stream only follow each other.
      if (found == unfinished_.end() || is_neighbor(in_.edge(e))) {
        continue;
      }
      emit_finish(found->second);
      unfinished_.erase(found);
    }
  }

  void emit_finish(const Instruction& start) {
    Instruction& finish = list_.emit(start.stream, Op::Finish);
    finish.collective = start.collective;
    finish.group = start.group;
    finish.round = start.round;
    finish.task = start.task;
    finish.chunks = start.chunks;
    finish.returns = start.returns;
    read_exchanged(finish, start);
  }

  /// Returns whether the edge only keeps the order of a communication stream.
  [[nodiscard]] bool is_neighbor(const DagEdge& e) const {
    return !e.data && is_collective(in_.dag.node(e.to).kind) &&
           in_.dag.node(e.to).stream == in_.dag.node(e.from).stream;
  }

  const EmitInput& in_;
  const std::vector<int>& nodes_;
  const int units_;
  const TaskRuns runs_;
  StageFacts facts_;
  ListWriter list_;
  TransferWriter transfers_;
  std::vector<bool> emitted_;              // by position: a run with this node
  std::map<int, Instruction> unfinished_;  // by node
  /// By group: how many have started.
  std::map<std::pair<std::int32_t, CollectiveKind>, std::int32_t> rounds_;
  int groups_ = 0;
};

}  // namespace

EmittedList emit(const EmitInput& input, int place, const std::vector<int>& nodes) {
  return Emission(input, place, nodes).run();
}

}  // namespace stagecraft
