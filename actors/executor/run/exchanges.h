/// Exchanges moves the samples of divided chunks between the ranks of their groups (P-13), and the
/// gradients of these samples.
///
/// Each of n ranks has the samples of its own microbatch for all experts, and 1/n of the experts:
///
///     brings     [E, C, d] of each rank    ->  [E/n, n*C, d], those of all ranks for its experts
///     returns    [E/n, n*C, d]             ->  [E, C, d], those of its own microbatch
///
/// The executor makes it and uses it on its plan thread.
/// XC-1: in dimension 1, samples lie in ascending order of their ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/setup/plan_share.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/compiler/plan/instruction.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

/// Numbers of the groups' other collectives in a step are lower.
inline constexpr std::int32_t kFirstExchange = 1;

class Exchanges {
 public:
  /// Views both arguments.
  Exchanges(const PlanShare& share, Collective& collective);

  /// `tags`: plan, epoch and submission of the step's collectives.
  void begin_step(const Sequence& tags);

  /// Hands over the values that an exchange moves. Requires: its Start or Finish; `saved` is of its
  /// task, `stage` of the task's shape.
  /// Errors: PlanInvalid for values without experts for each rank, or without samples of each;
  /// those of Collective::all_to_all and its wait.
  void start(const Instruction& exchange, const StageRuntime& stage, SavedStage& saved);
  /// Waits, and replaces them by what the other ranks have sent.
  void finish(const Instruction& exchange,
              const StageRuntime& stage,
              SavedStage& saved,
              Deadline deadline);

  /// Gives up what a failed step has started.
  void drop();

 private:
  struct Moved {
    std::size_t position = 0;         // among the values of the exchange
    std::vector<std::int64_t> sizes;  // as received
    bool requires_grad = false;
    std::unique_ptr<PendingResult> pending;
  };
  using Round = std::pair<std::int32_t, std::int32_t>;  // group, round

  const PlanShare& share_;
  Collective& collective_;
  Sequence tags_;
  std::map<std::int32_t, std::int32_t> next_;  // number of a collective, by group
  std::map<Round, std::vector<Moved>> started_;
};

}  // namespace stagecraft
