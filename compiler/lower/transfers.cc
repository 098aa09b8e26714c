#include "stagecraft/compiler/lower/transfers.h"

#include <algorithm>

namespace stagecraft {

TransferWriter::TransferWriter(const EmitInput& input,
                               const std::vector<int>& nodes,
                               const TaskRuns& runs,
                               StageFacts& facts,
                               ListWriter& list)
    : in_(input),
      nodes_(nodes),
      runs_(runs),
      facts_(facts),
      list_(list),
      emitted_(nodes.size(), false) {
  for (const PlanEdge& edge : in_.source.edges) {
    if (edge.from == StageId(-1)) {
      feed_edges_[{edge.to, edge.value}] = edge.id;
    } else if (edge.to == StageId(-1)) {
      result_edges_[{edge.from, edge.value}] = edge.id;
    }
  }
}

void TransferWriter::emit_inputs(const TaskRuns::Run& run, int unit) {
  const DagNode& node = in_.dag.node(nodes_[run.nodes.front()]);
  if (node.kind == DagKind::Forward) {
    emit_feeds(run, unit);
  }
  std::map<EdgeId, std::vector<ValueKey>> parts;
  for (const std::size_t i : run.nodes) {
    for (const int e : in_.edges.incoming(nodes_[i])) {
      const DagEdge& edge = in_.edge(e);
      if (in_.dag.node(edge.from).kind != DagKind::Receive) {
        continue;
      }
      if (!is_emitted(runs_.position_of(edge.from)) || unit > 0) {
        emit_transfer(edge.from, unit);
      }
      if (edge.part) {
        parts[edge.tensor].push_back(part_key(in_.tensor(edge.tensor), *edge.part, unit));
      }
    }
  }
  for (auto& [of, keys] : parts) {
    emit_joint(in_.task_in(node, unit), of, keys);
  }
}

void TransferWriter::emit_feeds(const TaskRuns::Run& run, int unit) {
  const DagNode& node = in_.dag.node(nodes_[run.nodes.front()]);
  const StageProgram& stage = in_.program_of(node.stage);
  const ChunkFacts& facts = facts_.of(node.stage);
  const Task task = in_.task_in(node, unit);
  for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
    const StageInput& input = stage.inputs[i];
    const int reader = facts.first_reader[i];
    if (input.source == StageInput::Source::Stage || reader < run.chunks.first ||
        reader >= run.chunks.end()) {
      continue;
    }
    const EdgeId of = feed_edge(node.stage, input.value);
    const bool label = input.source == StageInput::Source::Label;
    const BatchSlice& slice =
        (label ? in_.program.labels : in_.program.inputs)[static_cast<std::size_t>(input.position)];
    const int parts = slice.replicated ? 1 : in_.size_of(node.stage);
    std::vector<ValueKey> keys;
    const auto [begin, end] = in_step(node.microbatch, parts);
    for (int m = begin; m < end; ++m) {
      const ValueKey key = parts == 1 ? key_of(in_.tensor(of), task.microbatch, true)
                                      : part_key(in_.tensor(of), {m, m + 1}, unit);
      Instruction& receive = list_.emit(list_.driver_stream(true), Op::Recv);
      receive.peer = kDriverPeer;
      receive.edge = of;
      receive.task = task;
      list_.write(receive, key);
      keys.push_back(key);
    }
    if (parts > 1) {
      emit_joint(task, of, keys);
    }
  }
}

void TransferWriter::emit_transfer(int n, int unit) {
  emitted_[runs_.position_of(n)] = true;
  const DagNode& node = in_.dag.node(n);
  const PlanEdge& of = in_.tensor(node.tensor);
  const bool sends = node.kind == DagKind::Send;
  const DagEdge& moved = in_.edge(runs_.data_edge(n));
  // A transfer belongs to the task that makes or reads the tensor.
  const Task task = in_.task_in(in_.dag.node(sends ? moved.from : moved.to), unit);
  const ValueKey key =
      node.part ? part_key(of, *node.part, unit) : key_of(of, task.microbatch, /*received=*/!sends);
  if (sends && node.part) {
    emit_part(task, of, node, key);
  }
  Instruction& transfer = list_.emit(list_.stream(node.stream), sends ? Op::Send : Op::Recv);
  transfer.peer = list_.peer(in_.dag.node(node.peer).place, unit);
  transfer.edge = node.tensor;
  transfer.task = task;
  if (sends) {
    list_.read(transfer, key);
  } else {
    list_.write(transfer, key);
  }
}

/// Takes the part that another stage wants out of a tensor.
void TransferWriter::emit_part(const Task& task,
                               const PlanEdge& of,
                               const DagNode& node,
                               const ValueKey& key) {
  const int size = in_.size_of(task.stage);
  Instruction& part = list_.emit(kCompute, Op::Regroup);
  part.task = task;
  list_.read(part, key_of(of, task.microbatch, /*received=*/false));
  part.rows.push_back({node.part->begin - in_step(node.microbatch, size).begin,
                       node.part->end - node.part->begin,
                       size});
  list_.write(part, key);
}

/// Joins the parts received for one value.
void TransferWriter::emit_joint(const Task& task, EdgeId of, std::vector<ValueKey>& parts) {
  std::ranges::sort(parts, {}, &ValueKey::microbatch);
  Instruction& joint = list_.emit(kCompute, Op::Regroup);
  joint.task = task;
  for (const ValueKey& part : parts) {
    list_.read(joint, part);
    joint.rows.push_back({});
  }
  list_.write(joint, key_of(in_.tensor(of), task.microbatch, true));
}

/// Returns the name of a part of the tensor, which is the consumer's at both ends.
ValueKey TransferWriter::part_key(const PlanEdge& edge,
                                  const MicrobatchRange& part,
                                  int unit) const {
  const bool gradient = edge.role == Role::Gradient;
  return {edge.value,
          gradient ? Role::GradientPart : Role::ActivationPart,
          gradient ? edge.from : edge.to,
          Microbatch(part.begin + unit * in_.dag.microbatches)};
}

void TransferWriter::emit_sends(const TaskRuns::Run& run, int unit) {
  for (const std::size_t i : run.nodes) {
    for (const int e : in_.edges.outgoing(nodes_[i])) {
      const int to = in_.edge(e).to;
      if (in_.edge(e).data && in_.dag.node(to).kind == DagKind::Send &&
          runs_.is_in_block(runs_.position_of(to))) {
        emit_transfer(to, unit);
      }
    }
  }
}

void TransferWriter::emit_results(const TaskRuns::Run& run, int unit) {
  const DagNode& node = in_.dag.node(nodes_[run.nodes.front()]);
  if (in_.program.evaluates == nullptr || node.kind != DagKind::Forward) {
    return;
  }
  const StageProgram& stage = in_.program_of(node.stage);
  const Task task = in_.task_in(node, unit);
  for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
    const auto found = result_edges_.find({node.stage, stage.outputs[i].value});
    const int maker = facts_.of(node.stage).maker[i];
    if (found == result_edges_.end() || maker < run.chunks.first || maker >= run.chunks.end()) {
      continue;
    }
    Instruction& send = list_.emit(list_.driver_stream(false), Op::Send);
    send.peer = kDriverPeer;
    send.edge = found->second;
    send.task = task;
    list_.read(send, key_of(in_.tensor(found->second), task.microbatch, false));
  }
}

}  // namespace stagecraft
