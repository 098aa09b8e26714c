/// Instruction: one thing a rank does in a step. Made by lowering, run by the executor, printed by
/// to_string(Plan).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/plan/op.h"
#include "stagecraft/scheduler/cell.h"

namespace stagecraft {

/// A queue of a rank (P-2). Transfers have the stream of their name; everything else computes, but
/// a Free may stand on any.
enum class Stream : std::uint8_t { Compute, Send, Receive };
inline constexpr std::size_t kStreams = 3;

enum class CollectiveKind : std::uint8_t {
  AllReduce,      ///< everybody has the sum
  ReduceScatter,  ///< everybody has a part of the sum
  AllGather,      ///< everybody has all parts
  AllToAll,       ///< everybody has one part of each
};

enum class Role : std::uint8_t {
  Activation,         ///< what a forward returns, or a model input or label
  Gradient,           ///< of an activation, as one consumer sends it back
  Saved,              ///< what autograd keeps between forward and backward
  ParameterGradient,  ///< of all parameters of a stage, for one microbatch
  ActivationPart,     ///< the rows of an activation that one microbatch of its consumer takes
  GradientPart,       ///< likewise of a gradient, for one of its producer
};

/// What a slot holds while an instruction uses it.
struct ValueKey {
  ValueId value = kNoValue;  ///< of the graph; kNoValue for Saved and ParameterGradient
  Role role = Role::Activation;
  /// Who made it; the consumer, for a gradient, for a part and for an input of the model.
  StageId stage;
  Microbatch microbatch;  ///< of a part: the first of the step's microbatches that are in it

  friend auto operator<=>(const ValueKey&, const ValueKey&) = default;
};

struct SlotUse {
  SlotId slot;
  ValueKey value;
};

/// Of a tensor whose dimension 0 is `of` equal parts: `count` of them, from `first` on.
struct RowRange {
  std::int32_t first = 0;
  std::int32_t count = 1;
  std::int32_t of = 1;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

struct Instruction {
  InstructionId id;
  Stream stream = Stream::Compute;
  Op op = Op::Run;
  std::vector<InstructionId> waits;
  std::vector<SlotUse> reads, writes;
  std::vector<RowRange> rows;  ///< Regroup: of each read, one behind the other
  Task task;                   ///< Run, Accumulate, Send, Recv, Regroup: whose; Update: its stage
  Rank peer;                   ///< Send, Recv
  EdgeId edge;                 ///< Send, Recv
  CollectiveKind collective = CollectiveKind::AllReduce;
  int group = -1;    ///< Collective: which of the plan's replica groups, or ties for an all-gather
  int overlap = -1;  ///< equal for the tasks of one overlap group of the rank; -1: in none

  /// Send, Recv: the microbatch in the transfer's tag: that of what is transferred.
  [[nodiscard]] Microbatch transferred() const {
    const std::vector<SlotUse>& moved = op == Op::Send ? reads : writes;
    return moved.empty() ? task.microbatch : moved.front().value.microbatch;  // as before verify()
  }

  /// Keeps P-8: a backward that does something reads what its forward has saved.
  [[nodiscard]] bool does_nothing() const {
    return op == Op::Run && task.kind != CellKind::Forward && reads.empty();
  }
};

template <class V>
decltype(auto) visit_fields(Task& m, V&& v) {
  return v(m.kind, m.stage, m.microbatch);
}
template <class V>
decltype(auto) visit_fields(ValueKey& m, V&& v) {
  return v(m.value, m.role, m.stage, m.microbatch);
}
template <class V>
decltype(auto) visit_fields(SlotUse& m, V&& v) {
  return v(m.slot, m.value);
}
template <class V>
decltype(auto) visit_fields(RowRange& m, V&& v) {
  return v(m.first, m.count, m.of);
}
template <class V>
decltype(auto) visit_fields(Instruction& m, V&& v) {
  return v(m.id,
           m.stream,
           m.op,
           m.waits,
           m.reads,
           m.writes,
           m.rows,
           m.task,
           m.peer,
           m.edge,
           m.collective,
           m.group,
           m.overlap);
}

}  // namespace stagecraft
