/// StepLoop runs one step. It issues the bound instructions of a rank's list in their order, but
/// within an overlap group it prefers tasks whose tensors have arrived (OverlapGroup).
///
/// The executor makes it for one step and uses it on its plan thread. For each instruction it makes
/// the stream wait for the events of other streams, does the work, and notes the event, the
/// progress and the time. Before each instruction it checks that the step was not given up (keeps
///
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "stagecraft/actors/executor/commit/commit.h"
#include "stagecraft/actors/executor/device/device.h"
#include "stagecraft/actors/executor/device/step_times.h"
#include "stagecraft/actors/executor/device/timeline.h"
#include "stagecraft/actors/executor/run/exchanges.h"
#include "stagecraft/actors/executor/run/running_step.h"
#include "stagecraft/actors/executor/run/task_gate.h"
#include "stagecraft/actors/executor/run/task_runner.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/step/progress.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// RankParts holds the parts of a rank that all its steps share.
struct RankParts {
  const RankSetup& setup;
  Transport& transport;
  Device& device;
  Progress& progress;
  StepValues& values;
  StepTimes& times;
  Commit& commit;
  Exchanges& exchanges;
  std::vector<StageRuntime>& trained;
};

class StepLoop {
 public:
  /// Views all arguments. `recorder`: records the times of instructions; null if there is no
  /// timeline.
  StepLoop(const RankParts& rank, RunningStep& step, TimelineRecorder* recorder);

  /// Runs the list to its end.
  /// Errors: those of an instruction, with rank, stage, microbatch, step and task.
  void run();

 private:
  [[nodiscard]] std::size_t run_group(std::size_t begin);
  void run_decided();
  [[nodiscard]] std::optional<std::size_t> next_task();
  void issue(std::size_t position);
  void begin(const BoundInstruction& bound);
  void execute(const BoundInstruction& bound, std::size_t position);
  void exchange(const BoundInstruction& bound);
  void send(const BoundInstruction& bound, std::size_t position);
  [[nodiscard]] at::Tensor as_sent(const BoundInstruction& bound, const at::Tensor& tensor);
  void receive(const BoundInstruction& bound, std::size_t position);
  void skip(const BoundInstruction& bound, std::size_t position);
  void record(const BoundInstruction& bound,
              std::size_t position,
              Device::Event start,
              Device::Event end);
  [[nodiscard]] std::int64_t bytes_moved(const BoundInstruction& bound) const;

  const RankParts& rank_;
  RunningStep& step_;
  TaskRunner tasks_;
  TimelineRecorder* const recorder_;
  std::optional<TaskGate> gate_;  ///< if the driver dispatches the step by task
};

}  // namespace stagecraft
