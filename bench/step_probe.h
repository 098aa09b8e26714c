/// StepProbe: watches what the ranks of a trainer do, where they are threads of this process.
///
/// It learns through TrainerOptions::before_instruction where a rank is, and through LibTorch's
/// RecordFunction and the allocator what runs inside the rank's tasks. What is neither asked for
/// nor under way costs a rank two reads per instruction.
///
/// Thread: that of the trainer; what it is asked for between steps is seen by the next one.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/bench/call_times.h"
#include "stagecraft/bench/product_calls.h"
#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft::bench {

class StepProbe {
 public:
  explicit StepProbe(int ranks);
  ~StepProbe();
  StepProbe(const StepProbe&) = delete;
  StepProbe& operator=(const StepProbe&) = delete;

  /// For the one trainer that is watched, which ends before this does.
  [[nodiscard]] std::function<void(Rank, const Instruction&)> hook();

  /// Runs steps with everything timed. Returns what was in the tasks of each rank, by rank.
  /// Requires: the trainer has made a step: what it sets up for good it has set up.
  [[nodiscard]] std::vector<std::vector<CallTime>> timed(const std::function<void()>& steps);

  /// Runs a step. Returns the matrix products of each rank's tasks, in their order.
  [[nodiscard]] std::vector<ProductCalls> products(const std::function<void()>& step);

  /// Runs a step, before which each rank does `errand` on its thread. Returns the seconds of each.
  [[nodiscard]] std::vector<double> on_ranks(const std::function<void(Rank)>& errand,
                                             const std::function<void()>& step);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft::bench
