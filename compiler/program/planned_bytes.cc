#include "stagecraft/compiler/program/planned_bytes.h"

#include <algorithm>
#include <map>
#include <set>

namespace stagecraft {
namespace {

const StageProgram& program_of(const CompiledProgram& program,
                               const PlanTables& tables,
                               StageId stage) {
  return program.partition.stages[tables.stages[stage.index()].program.index()];
}

/// Returns a bound for a part: it is no larger than the share of the value that either of its
/// stages takes.
std::int64_t least_bytes(const CompiledProgram& program,
                         const PlanTables& tables,
                         const ValueKey& key) {
  const StageProgram& consumer = program_of(program, tables, key.stage);
  const std::int64_t whole = bytes_of(consumer.at(key.value));
  const auto input = std::ranges::find(consumer.inputs, key.value, &StageInput::value);
  if (input == consumer.inputs.end() || input->source != StageInput::Source::Stage) {
    return whole / tables.stages[key.stage.index()].size;
  }
  return std::min(whole, bytes_of(program.partition.stages[input->from.index()].at(key.value)));
}

std::int64_t bytes_of_slot(const CompiledProgram& program,
                           const PlanTables& tables,
                           const ValueKey& key) {
  const StageProgram& stage = program_of(program, tables, key.stage);
  switch (key.role) {
    case Role::Activation:
    case Role::Gradient:
      return bytes_of(stage.at(key.value));
    case Role::ActivationPart:
    case Role::GradientPart:
      return least_bytes(program, tables, key);
    case Role::Saved:
      return stage.saved_bytes;
    case Role::ParameterGradient:
      return 0;  // as large as the weights, and counted with them
  }
  return 0;
}

}  // namespace

std::int64_t peak_activation_bytes(const CompiledProgram& program,
                                   const PlanTables& tables,
                                   const RankList& list) {
  std::map<SlotId, std::int64_t> held;
  std::set<SlotId> replayed;
  std::int64_t now = 0, peak = 0;
  for (const Instruction& instruction : list.instructions) {
    if (instruction.op == Op::Free) {
      for (const SlotUse& use : instruction.reads) {
        now -= held[use.slot];
        held[use.slot] = 0;
        replayed.erase(use.slot);
      }
    }
    for (const SlotUse& use : instruction.writes) {
      now += bytes_of_slot(program, tables, use.value) - held[use.slot];
      held[use.slot] = bytes_of_slot(program, tables, use.value);
    }
    std::int64_t transient = 0;
    if (instruction.op == Op::Run && !instruction.does_nothing()) {
      const StageProgram& stage = program_of(program, tables, instruction.task.stage);
      if (instruction.task.kind == CellKind::Forward) {
        transient = stage.transient_bytes;
      }
      // A replay lives until the weight half of a split backward, and otherwise only while its
      // chunk is differentiated.
      for (const SlotUse& use : instruction.reads) {
        if (use.value.role != Role::Saved || replayed.contains(use.slot) ||
            instruction.task.kind == CellKind::Forward) {  // which adds to it, chunk by chunk
          continue;
        }
        if (instruction.task.kind == CellKind::BackwardInput) {
          replayed.insert(use.slot);
          held[use.slot] += stage.replayed_bytes();
          now += stage.replayed_bytes();
        } else {
          transient += stage.largest_replay();
        }
      }
    }
    peak = std::max(peak, now + transient);
  }
  return peak;
}

}  // namespace stagecraft
