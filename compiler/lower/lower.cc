#include "stagecraft/compiler/lower/lower.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/lower/feeds.h"
#include "stagecraft/compiler/lower/lifetimes.h"
#include "stagecraft/compiler/lower/waits.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {
namespace {

/// NodeEdges holds the edges of each node. It is made once for all ranks.
struct NodeEdges {
  explicit NodeEdges(const StepDag& dag) : incoming(dag.nodes.size()), outgoing(dag.nodes.size()) {
    for (std::size_t e = 0; e < dag.edges.size(); ++e) {
      incoming[static_cast<std::size_t>(dag.edges[e].to)].push_back(e);
      outgoing[static_cast<std::size_t>(dag.edges[e].from)].push_back(e);
    }
  }

  std::vector<std::vector<std::size_t>> incoming, outgoing;
};

/// RankLowering builds one rank's list: each compute node with its receives before it and its sends
/// after it.
class RankLowering {
 public:
  /// `mine`: the nodes of the rank, in ascending order.
  RankLowering(const StepDag& dag,
               const NodeEdges& edges,
               const CompiledProgram& program,
               Rank rank,
               std::vector<int> mine)
      : dag_(dag), edges_(edges), program_(program), mine_(std::move(mine)) {
    plan_.rank = rank;
  }

  RankPlan run() {
    std::set<StageId> stages;
    for (const int n : in_order()) {
      const StepNode& node = dag_.nodes[static_cast<std::size_t>(n)];
      switch (node.kind) {
        case StepNodeKind::Compute:
          stages.insert(node.task.stage);
          emit_compute(n, node);
          break;
        case StepNodeKind::Reduce:
          emit(Stream::Compute, Op::Collective).group = node.group;
          break;
        case StepNodeKind::Tie:
          emit_tie(node.group);
          break;
        case StepNodeKind::Vote:
          emit(Stream::Compute, Op::Vote);
          break;
        case StepNodeKind::Update:
          emit(Stream::Compute, Op::Update).task = node.task;
          break;
        case StepNodeKind::Send:
        case StepNodeKind::Receive:
          break;  // emitted with the compute node that they serve
      }
    }
    plan_.stages.assign(stages.begin(), stages.end());
    assign_slots(plan_);
    set_waits(plan_);
    return std::move(plan_);
  }

 private:
  /// Returns the rank's nodes in topological order; ties by position, so the result is always the
  /// same.
  std::vector<int> in_order() {
    std::map<int, int> missing;
    for (const int n : mine_) {
      for (const std::size_t e : edges_.incoming[static_cast<std::size_t>(n)]) {
        missing[n] += is_mine(dag_.edges[e].from) ? 1 : 0;
      }
    }
    std::set<int> ready;
    for (const int n : mine_) {
      if (missing[n] == 0) {
        ready.insert(n);
      }
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int n = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(n);
      for (const std::size_t e : edges_.outgoing[static_cast<std::size_t>(n)]) {
        const int next = dag_.edges[e].to;
        if (is_mine(next) && --missing[next] == 0) {
          ready.insert(next);
        }
      }
    }
    SC_CHECK(order.size() == mine_.size(), "the order of a validated schedule has no cycle");
    return order;
  }

  [[nodiscard]] bool is_mine(int node) const {
    return dag_.nodes[static_cast<std::size_t>(node)].rank == plan_.rank;
  }

  Instruction& emit(Stream stream, Op op) {
    plan_.instructions.push_back(
        {.id = InstructionId(plan_.instructions.size()), .stream = stream, .op = op});
    return plan_.instructions.back();
  }

  void emit_tie(int number) {
    Instruction& sum = emit(Stream::Compute, Op::Collective);
    sum.collective = CollectiveKind::AllGather;
    sum.group = number;
  }

  static void read(Instruction& instruction, const ValueKey& key) {
    instruction.reads.push_back({SlotId(-1), key});
  }

  static void write(Instruction& instruction, const ValueKey& key) {
    instruction.writes.push_back({SlotId(-1), key});
  }

  [[nodiscard]] const PlanEdge& tensor(EdgeId id) const { return dag_.tensors[id.index()]; }

  /// Returns the name of a tensor that reached this rank by an edge. Gradients and received
  /// activations carry the consumer's name, because two consumers on this rank get two tensors. A
  /// local activation is the producer's one tensor.
  [[nodiscard]] ValueKey key_of(const PlanEdge& edge, Microbatch m, bool received) const {
    if (edge.role == Role::Gradient) {
      return {edge.value, Role::Gradient, edge.from, m};
    }
    return {edge.value, Role::Activation, received ? edge.to : edge.from, m};
  }

  /// Returns the name of a part of the tensor, which is the consumer's at both ends.
  [[nodiscard]] static ValueKey part_key(const PlanEdge& edge, const MicrobatchRange& part) {
    const bool gradient = edge.role == Role::Gradient;
    return {edge.value,
            gradient ? Role::GradientPart : Role::ActivationPart,
            gradient ? edge.from : edge.to,
            Microbatch(part.begin)};
  }

  void emit_compute(int n, const StepNode& node) {
    const Task& task = node.task;
    const std::size_t first = plan_.instructions.size();
    std::map<EdgeId, bool> arrived;  // whether the value arrived by a receive
    std::map<EdgeId, std::vector<ValueKey>> parts;
    for (const std::size_t e : edges_.incoming[static_cast<std::size_t>(n)]) {
      const StepEdge& edge = dag_.edges[e];
      if (!edge.data || edge.edge.value < 0) {
        continue;
      }
      const StepNode& from = dag_.nodes[static_cast<std::size_t>(edge.from)];
      arrived[edge.edge] = from.kind == StepNodeKind::Receive;
      if (from.kind == StepNodeKind::Receive) {
        const ValueKey key = edge.part ? part_key(tensor(edge.edge), *edge.part)
                                       : key_of(tensor(edge.edge), task.microbatch, true);
        Instruction& receive = emit(Stream::Receive, Op::Recv);
        receive.peer = from.peer;
        receive.edge = edge.edge;
        receive.task = task;
        write(receive, key);
        if (edge.part) {
          parts[edge.edge].push_back(key);
        }
      }
    }
    for (auto& [edge, keys] : parts) {
      emit_joint(task, edge, keys);
    }
    emit_run(task, arrived);
    for (const std::size_t e : edges_.outgoing[static_cast<std::size_t>(n)]) {
      const StepNode& to = dag_.nodes[static_cast<std::size_t>(dag_.edges[e].to)];
      if (to.kind == StepNodeKind::Send) {
        emit_send(task, to);
      }
    }
    for (std::size_t i = first; i < plan_.instructions.size(); ++i) {
      plan_.instructions[i].overlap = node.overlap;
    }
  }

  /// Joins the parts received for one value.
  void emit_joint(const Task& task, EdgeId edge, std::vector<ValueKey>& parts) {
    std::ranges::sort(parts, {}, &ValueKey::microbatch);
    Instruction& joint = emit(Stream::Compute, Op::Regroup);
    joint.task = task;
    for (const ValueKey& part : parts) {
      read(joint, part);
      joint.rows.push_back({});
    }
    write(joint, key_of(tensor(edge), task.microbatch, true));
  }

  void emit_send(const Task& task, const StepNode& to) {
    ValueKey key = key_of(tensor(to.edge), task.microbatch, false);
    if (to.part) {
      const int size = program_.stage_graph.microbatch_size(task.stage);
      Instruction& part = emit(Stream::Compute, Op::Regroup);
      part.task = task;
      read(part, key);
      part.rows.push_back({to.part->begin - in_step(task.microbatch, size).begin,
                           to.part->end - to.part->begin,
                           size});
      key = part_key(tensor(to.edge), *to.part);
      write(part, key);
    }
    Instruction& send = emit(Stream::Send, Op::Send);
    send.peer = to.peer;
    send.edge = to.edge;
    send.task = task;
    read(send, key);
  }

  void emit_run(const Task& task, const std::map<EdgeId, bool>& arrived) {
    Instruction& run = emit(Stream::Compute, Op::Run);
    run.task = task;
    if (program_.stage_graph.is_surplus(task)) {
      return;  // P-8
    }
    const StageProgram& stage = program_.partition.stages[task.stage.index()];
    const Microbatch m = task.microbatch;
    const ValueKey saved{kNoValue, Role::Saved, task.stage, m};
    const ValueKey gradients{kNoValue, Role::ParameterGradient, task.stage, m};
    for (const auto& [edge, received] : arrived) {
      read(run, key_of(tensor(edge), m, received));
    }
    if (task.kind == CellKind::Forward) {
      for (const StageOutput& output : stage.outputs) {
        write(run, {output.value, Role::Activation, task.stage, m});
      }
      if (dag_.training && program_.stage_graph.has_backward(task.stage)) {
        write(run, saved);
      }
      return;
    }
    read(run, saved);
    if (task.kind != CellKind::BackwardWeight) {
      for (const StageInput& input : stage.inputs) {
        if (input.owes_gradient) {
          write(run, {input.value, Role::Gradient, task.stage, m});
        }
      }
    }
    if (task.kind != CellKind::BackwardInput && stage.trains()) {
      write(run, gradients);
      Instruction& accumulate = emit(Stream::Compute, Op::Accumulate);
      accumulate.task = task;
      read(accumulate, gradients);
    }
  }

  const StepDag& dag_;
  const NodeEdges& edges_;
  const CompiledProgram& program_;
  RankPlan plan_;
  const std::vector<int> mine_;
};

std::vector<PlanResult> results_of(const Plan& plan) {
  std::vector<PlanResult> results;
  for (const RankPlan& rank : plan.ranks) {
    for (const Instruction& i : rank.instructions) {
      if (i.op == Op::Send && i.peer == kDriver) {
        results.push_back({rank.rank, i.edge, i.transferred(), plan.edges[i.edge.index()].value});
      }
    }
  }
  return results;
}

}  // namespace

Plan lower(const StepDag& dag, const CompiledProgram& program) {
  Plan plan;
  plan.training = dag.training;
  plan.microbatches = dag.microbatches;
  plan.losses = dag.losses;
  plan.edges = dag.tensors;
  plan.replica_groups = dag.replica_groups;
  plan.ties = dag.ties;
  std::map<Rank, std::vector<int>> nodes;
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    nodes[*dag.nodes[n].rank].push_back(static_cast<int>(n));
  }
  const NodeEdges edges(dag);
  for (auto& [rank, mine] : nodes) {
    plan.ranks.push_back(RankLowering(dag, edges, program, rank, std::move(mine)).run());
  }
  for (const RankPlan& rank : plan.ranks) {
    std::ranges::copy(feeds_of(rank, program.partition.stages), std::back_inserter(plan.feeds));
  }
  plan.results = results_of(plan);
  const std::vector<std::string> faults = verify(plan);
  if (!faults.empty()) {
    throw Error(Errc::PlanInvalid,
                fmt::format("the lowered plan breaks its rules: {}", fmt::join(faults, "; ")));
  }
  return plan;
}

Plan lower_schedule(const Program& program,
                    const Schedule& given,
                    const Layout& layout,
                    bool training) {
  const Schedule schedule = layout.with_step_microbatches(given);
  const CompiledProgram& compiled = program.compiled();
  std::vector<Rank> rank_of_stage;
  for (int s = 0; s < compiled.stage_graph.size(); ++s) {
    const std::span<const Rank> ranks = layout.ranks_of(StageId(s));
    SC_CHECK(ranks.size() == 1, "every stage of a validated schedule has a row, and it one rank");
    rank_of_stage.push_back(ranks.front());
  }
  StepDag dag = build_training_dag(compiled, schedule, training);
  place(dag, rank_of_stage);
  order(dag, schedule);
  return lower(dag, compiled);
}

}  // namespace stagecraft
