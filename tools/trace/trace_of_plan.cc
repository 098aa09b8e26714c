#include "stagecraft/tools/trace/trace_of_plan.h"

#include <algorithm>

namespace stagecraft::tools {
namespace {

/// Returns a task with the number in its schedule: copies count their microbatches from 0 (LA-1,
/// LA-3).
Task own_number(Task task, const PlanTables& tables, const Layout& layout) {
  if (task.kind != CellKind::Idle && task.kind != CellKind::Update) {
    const int unit = tables.microbatches / layout.units() / tables.stages[task.stage.index()].size;
    const int copy = layout.replica(task.stage);
    task.microbatch = Microbatch(task.microbatch.value % unit - copy * (unit / layout.replicas()));
  }
  return task;
}

}  // namespace

namespace {

TogetherKind together_kind(const PlanTables& tables, const Instruction& i) {
  return is_exchange(i)                                      ? TogetherKind::Exchange
         : is_collective(i.op) && gathers_weights(tables, i) ? TogetherKind::Gather
                                                             : TogetherKind::Sum;
}

}  // namespace

TraceStep trace_step(std::int64_t step,
                     const Plan& plan,
                     const Layout& layout,
                     const std::vector<std::vector<InstructionTime>>& timelines) {
  TraceStep out{.step = step, .ranks = {}};
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    const RankPlan& of_rank = plan.ranks[rank];
    const std::vector<Instruction>& instructions = plan.list_of(of_rank.rank).instructions;
    std::vector<TraceEvent>& events = out.ranks.emplace_back();
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      const bool moves = is_transfer(instruction.op);
      events.push_back(
          {.op = instruction.op,
           .task = own_number(instruction.task, plan.tables, layout),
           .peer = moves ? of_rank.peers[instruction.peer.index()] : Rank(),
           .edge = instruction.edge,
           .part = moves ? tagged_microbatch(plan.tables, of_rank, instruction) : Microbatch(),
           .together = together_kind(plan.tables, instruction),
           .group = instruction.group,
           .round = instruction.round,
           .time = timelines[rank][i]});
    }
    // An overlap group may have run its tasks in another order than the plan's.
    std::ranges::stable_sort(events, {}, [](const TraceEvent& e) { return e.time.start; });
  }
  return out;
}

}  // namespace stagecraft::tools
