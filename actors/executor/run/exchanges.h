/// Exchanges moves the samples of divided chunks between the ranks of their groups (P-13), and the
/// gradients of these samples.
///
/// Each of n ranks has the samples of its own microbatch for all experts, and 1/n of the experts. C
/// is the number of samples of each expert in its microbatch, S the sum of C over the ranks:
///
///     brings     [E, C, d] of each rank    ->  [E/n, S, d], those of all ranks for its experts
///     returns    [E/n, S, d]               ->  [E, C, d], those of its own microbatch
///
/// The executor makes it and uses it on its plan thread.
/// XC-1: in dimension 1, samples lie in ascending order of their ranks.
/// XC-2: microbatches of other shapes have other C. Parts cross with the samples of the largest,
///       padded with zeros, which no chunk sees: microbatches of one step differ by one sample of
///       a batch at most (PT-1).
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
  /// Stages holds the stage of an exchange as each rank of its group runs it, for the shape of its
  /// microbatch; ascending by rank.
  using Stages = std::vector<const StageRuntime*>;

  /// Crossing says how a value crosses.
  struct Crossing {
    std::vector<std::int64_t> samples;        ///< of each rank, ascending by rank
    std::int64_t most = 0;                    ///< of these
    std::vector<std::int64_t> before, after;  ///< the sizes of the value
  };

  /// Views both arguments.
  Exchanges(const PlanShare& share, Collective& collective);

  /// `tags`: plan, epoch and submission of the step's collectives.
  void begin_step(const Sequence& tags);

  /// Hands over the values that an exchange moves. Requires: its Start or Finish; `saved` is of its
  /// task.
  /// Errors: PlanInvalid for values without experts for each rank, or of sizes that differ in more
  /// than samples; those of Collective::all_to_all and its wait.
  void start(const Instruction& exchange, const Stages& stages, SavedStage& saved);
  /// Waits, and replaces them by what the other ranks have sent.
  void finish(const Instruction& exchange,
              const Stages& stages,
              SavedStage& saved,
              Deadline deadline);

  /// Gives up what a failed step has started.
  void drop();

 private:
  struct Moved {
    std::size_t position = 0;  // among the values of the exchange
    Crossing crossing;
    bool requires_grad = false;
    std::unique_ptr<PendingResult> pending;
  };
  using Round = std::pair<std::int32_t, std::int32_t>;  // group, round

  /// Returns the position of this rank among those of the group.
  [[nodiscard]] std::size_t position_in(const Group& group) const;

  const PlanShare& share_;
  Collective& collective_;
  Sequence tags_;
  std::map<std::int32_t, std::int32_t> next_;  // number of a collective, by group
  std::map<Round, std::vector<Moved>> started_;
};

}  // namespace stagecraft
