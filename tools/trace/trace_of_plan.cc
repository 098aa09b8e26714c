#include "stagecraft/tools/trace/trace_of_plan.h"

#include <algorithm>

namespace stagecraft::tools {
namespace {

/// Returns a task with the number in its schedule: replicas count their microbatches from 0 (LA-1).
Task own_number(Task task, const Plan& plan, const Layout& layout) {
  if (task.kind != CellKind::Idle && task.kind != CellKind::Update) {
    task.microbatch.value -= layout.replica(task.stage) * (plan.microbatches / layout.replicas());
  }
  return task;
}

/// Returns likewise the microbatch of a transfer.
Microbatch own_part(const Instruction& transfer, const Plan& plan, const Layout& layout) {
  return own_number({transfer.task.kind, transfer.task.stage, transfer.transferred()}, plan, layout)
      .microbatch;
}

}  // namespace

TraceStep trace_step(std::int64_t step,
                     const Plan& plan,
                     const Layout& layout,
                     const std::vector<std::vector<InstructionTime>>& timelines) {
  TraceStep out{.step = step, .ranks = {}};
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    const std::vector<Instruction>& instructions = plan.ranks[rank].instructions;
    std::vector<TraceEvent>& events = out.ranks.emplace_back();
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      const bool moves = instruction.op == Op::Send || instruction.op == Op::Recv;
      events.push_back({.op = instruction.op,
                        .task = own_number(instruction.task, plan, layout),
                        .peer = instruction.peer,
                        .edge = instruction.edge,
                        .part = moves ? own_part(instruction, plan, layout) : Microbatch(),
                        .time = timelines[rank][i]});
    }
    // An overlap group may have run its tasks in another order than the plan's.
    std::ranges::stable_sort(events, {}, [](const TraceEvent& e) { return e.time.start; });
  }
  return out;
}

}  // namespace stagecraft::tools
