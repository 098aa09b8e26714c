/// TraceStep holds everything that the ranks recorded in one step, instruction by instruction, in
/// plain words.
///
/// It is made from a plan and the timelines of a step (trace_of_plan.h), or by reading a trace
/// file. It is written to a trace file, and converted to the scheduler's MeasuredStep. A value.
/// TS-1: the events of a rank are in the order in which they ran; one thread ran them, so they do
///       not overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/actors/executor/device/instruction_time.h"
#include "stagecraft/compiler/plan/op.h"
#include "stagecraft/scheduler/measured/measured_step.h"
#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft::tools {

/// TogetherKind names an operation of a group of ranks.
enum class TogetherKind : std::uint8_t {
  Sum,      ///< of gradients
  Gather,   ///< of weights
  Exchange  ///< of samples
};

struct TraceEvent {
  Op op = Op::Run;
  Task task;        ///< in the schedule's numbers; a vote, a free and a sum have none
  Rank peer;        ///< Send, Recv
  EdgeId edge;      ///< Send, Recv
  Microbatch part;  ///< Send, Recv: of the tag, so numbered in the step
  TogetherKind together = TogetherKind::Sum;  ///< Start, Finish
  int group = -1;                             ///< Start, Finish: the ranks' group; not read back
  int round = 0;                              ///< likewise
  InstructionTime time;
};

struct TraceStep {
  std::int64_t step = 0;  ///< the number of updates made with it
  std::vector<std::vector<TraceEvent>> ranks;
};

/// Returns the step by the schedule's rows, each as the first of its ranks measured it. A task
/// lasts from the start of its run until its gradients are added up.
/// Requires: the step has the layout's ranks.
[[nodiscard]] MeasuredStep measured_step(const TraceStep& step, const Layout& layout);

}  // namespace stagecraft::tools
