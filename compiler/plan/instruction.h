/// Instruction is one action of a rank in a step. Lowering makes it, the executor runs it, and
/// to_string(Plan) prints it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/plan/op.h"
#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft {

/// The stream of all computation. A list names its other streams.
inline constexpr StreamId kCompute{0};
/// The driver, as a peer of every list.
inline constexpr PeerId kDriverPeer{0};

enum class CollectiveKind : std::uint8_t {
  AllReduce,      ///< every rank has the sum
  ReduceScatter,  ///< every rank has a part of the sum
  AllGather,      ///< every rank has all parts
  AllToAll,       ///< every rank has one part from each rank
};

enum class Role : std::uint8_t {
  Activation,         ///< a result of a forward, or a model input or label
  Gradient,           ///< of an activation, as one consumer sends it back
  Saved,              ///< kept by autograd between forward and backward
  ParameterGradient,  ///< of the parameters of some chunks, for one microbatch
  ActivationPart,     ///< the rows of an activation that one microbatch of its consumer takes
  GradientPart,       ///< likewise of a gradient, for one microbatch of its producer
};

/// ValueKey names the content of a slot while an instruction uses it.
struct ValueKey {
  ValueId value = kNoValue;  ///< of the graph; kNoValue for Saved and ParameterGradient
  Role role = Role::Activation;
  /// The stage that made it; for a gradient, a part and an input of the model, the consumer.
  StageId stage;
  Microbatch microbatch;   ///< for a part: the first of the step's microbatches that are in it
  std::int32_t chunk = 0;  ///< ParameterGradient: the first of its chunks

  friend auto operator<=>(const ValueKey&, const ValueKey&) = default;
};

struct SlotUse {
  SlotId slot;
  ValueKey value;
};

/// RowRange selects `count` of `of` equal parts of dimension 0 of a tensor, beginning at part
/// `first`.
struct RowRange {
  std::int32_t first = 0;
  std::int32_t count = 1;
  std::int32_t of = 1;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// ChunkRange selects `count` chunks of a stage, beginning at chunk `first`.
struct ChunkRange {
  std::int32_t first = 0;
  std::int32_t count = 1;

  [[nodiscard]] std::int32_t end() const { return first + count; }
  [[nodiscard]] bool has(std::int32_t chunk) const { return chunk >= first && chunk < end(); }
  friend bool operator==(const ChunkRange&, const ChunkRange&) = default;
};

struct Instruction {
  InstructionId id;
  StreamId stream;
  Op op = Op::Run;
  CollectiveKind collective = CollectiveKind::AllReduce;  ///< Start, Finish
  std::vector<InstructionId> waits;
  std::vector<SlotUse> reads, writes;
  std::vector<RowRange> rows;  ///< Regroup: the rows of each read, joined in this order
  /// Run, Accumulate, Send, Recv, Regroup, an exchange: the task it belongs to; Update: its stage.
  /// Microbatches are numbered from the first one of the rank (RankPlan::first_microbatch).
  Task task;
  ChunkRange chunks;          ///< Run, Accumulate; an exchange: the divided one
  PeerId peer;                ///< Send, Recv
  EdgeId edge;                ///< Send, Recv
  std::int32_t group = -1;    ///< Start, Finish, Release: position in PlanTables::groups
  std::int32_t round = 0;     ///< Start, Finish: of a group's sums, gathers or exchanges
  bool returns = false;       ///< Start, Finish of an exchange: it comes after the task
  std::int32_t bucket = -1;   ///< Update: position in PlanTables::buckets
  std::int32_t overlap = -1;  ///< equal for the tasks of one overlap group of the rank; -1 for none

  /// Returns, for Send and Recv, the microbatch of the transferred value, as its key names it.
  [[nodiscard]] Microbatch transferred() const {
    const std::vector<SlotUse>& moved = op == Op::Send ? reads : writes;
    // Before verify() a transfer may lack its slot.
    return moved.empty() ? task.microbatch : moved.front().value.microbatch;
  }

  /// Keeps P-8: a backward that does something reads the values that its forward has saved.
  [[nodiscard]] bool does_nothing() const {
    return op == Op::Run && task.kind != CellKind::Forward && reads.empty();
  }
};

[[nodiscard]] constexpr bool is_transfer(Op op) {
  return op == Op::Send || op == Op::Recv;
}
[[nodiscard]] constexpr bool is_collective(Op op) {
  return op == Op::Start || op == Op::Finish;
}
/// Returns whether it begins or ends an exchange of samples among the ranks of a divided chunk.
[[nodiscard]] inline bool is_exchange(const Instruction& i) {
  return is_collective(i.op) && i.collective == CollectiveKind::AllToAll;
}

template <class V>
decltype(auto) visit_fields(Task& m, V&& v) {
  return v(m.kind, m.stage, m.microbatch);
}
template <class V>
decltype(auto) visit_fields(ValueKey& m, V&& v) {
  return v(m.value, m.role, m.stage, m.microbatch, m.chunk);
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
decltype(auto) visit_fields(ChunkRange& m, V&& v) {
  return v(m.first, m.count);
}
template <class V>
decltype(auto) visit_fields(Instruction& m, V&& v) {
  return v(m.id,
           m.stream,
           m.op,
           m.collective,
           m.waits,
           m.reads,
           m.writes,
           m.rows,
           m.task,
           m.chunks,
           m.peer,
           m.edge,
           m.group,
           m.round,
           m.returns,
           m.bucket,
           m.overlap);
}

}  // namespace stagecraft
