/// StepProbe watches the ranks of a trainer whose ranks are threads of this process.
///
/// It learns through TrainerOptions::before_instruction which instruction a rank runs, and through
/// LibTorch's RecordFunction and the allocator the calls inside the rank's tasks. While no
/// measurement is requested or running, it costs a rank two reads per instruction.
///
/// Thread: the trainer's. A request made between steps takes effect in the next step.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/bench/step/call_times.h"
#include "stagecraft/bench/step/product_calls.h"
#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft::bench {

class StepProbe {
 public:
  explicit StepProbe(int ranks);
  ~StepProbe();
  StepProbe(const StepProbe&) = delete;
  StepProbe& operator=(const StepProbe&) = delete;

  /// Returns the hook for the one trainer that is watched. The trainer must end before this object.
  [[nodiscard]] std::function<void(Rank, const Instruction&)> hook();

  /// Runs steps with everything timed. Returns the calls in the tasks of each rank, by rank.
  /// Requires: the trainer has made a step, so its permanent setup is done.
  [[nodiscard]] std::vector<std::vector<CallTime>> timed(const std::function<void()>& steps);

  /// Runs a step. Returns the matrix products of each rank's tasks, in their order.
  [[nodiscard]] std::vector<ProductCalls> products(const std::function<void()>& step);

  /// Runs a step, before which each rank runs `errand` on its thread. Returns the seconds of each
  /// errand.
  [[nodiscard]] std::vector<double> on_ranks(const std::function<void(Rank)>& errand,
                                             const std::function<void()>& step);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft::bench
