/// Crew holds the actors of one trainer, a driver and two per rank, with the data plane between
/// them. The trainer reaches them only through it. The crew does not know modules, files, or the
/// places of ranks: the cluster's launcher gives it a binding with workers and network.
///
/// CR-1: ending a crew takes at most its deadline. The ranks' agents first close the transports, so
///       that no rank waits for a tensor or begins another instruction. A rank that is still busy
///       at the deadline is left behind with the objects it uses, and is parked when the process
///       ends.
/// CR-2: once the process ends, or in a child of fork(), the crew waits for no actor.
/// CR-3: no wait lasts longer than the worker it waits for: when that worker is lost, the wait
///       fails with WorkerLost and the cause.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/crew/rank_state.h"
#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/actors/executor/setup/rank_shape.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

class Launcher;

class Crew {
 public:
  /// Launches all actors, hands out plan and weights, and waits until every rank is ready. The
  /// weights are those of the program. Draws the job's plan id. All deadlines are times of `clock`.
  /// Errors: those of a rank that cannot get ready; ClusterTimeout.
  Crew(Launcher& launcher,
       std::shared_ptr<StepLedger> ledger,
       Job job,
       std::shared_ptr<const Clock> clock = Clock::current());
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Takes on the workers that have replaced others: they get plan and setup, and their state must
  /// be written next.
  /// Requires: no step is in progress.
  /// Errors: those of the constructor.
  void take_replacements();

  /// Makes every rank take on its stages for another shape, and later also each worker that
  /// replaces one. Waits for the steps in progress. After an error, steps must not use the shape.
  /// Errors: those of a rank that cannot take it on; UsageArgument for a shape that cannot travel
  /// to its process.
  void add_shape(std::shared_ptr<const JobShape> shape);

  [[nodiscard]] PlanId plan_id() const;

  /// Tells the driver that the ledger has a step for it.
  void submit(Submission submission);

  /// Returns the list of each rank's state, by rank.
  [[nodiscard]] std::vector<StateListing> list_state();
  // These are the functions of StateTransfer.
  [[nodiscard]] std::vector<std::vector<StateTensor>> read_state(
      const std::vector<StatePick>& picks);
  [[nodiscard]] std::vector<std::vector<StateTensor>> read_gradients();
  void write_state(const StateOfRank& state_of,
                   std::int64_t updates,
                   const std::function<std::string()>& facts,
                   const std::function<void()>& forgotten = nullptr);
  /// Makes every rank restore its copy of this state. A lost rank gets it from its keeper.
  void take_mirrors(const RecoveryPoint& point, const std::string& facts);

  /// Returns the calls that restore the weights after a failed update (recovery_advice.h).
  [[nodiscard]] std::string_view advice() const;

  /// Returns the time at which a wait that begins now has to be over.
  [[nodiscard]] Deadline deadline(std::chrono::milliseconds patience) const;
  /// Waits for a tensor that the rank sends. Returns false at the deadline. Errors: WorkerLost if
  /// the rank ends before the tensor has come.
  [[nodiscard]] bool wait(Rank rank, const Future<at::Tensor>& awaited, Deadline deadline) const;

  /// Returns the current activity of each rank, by rank; nothing for a rank whose agent is gone, or
  /// does not answer within `limit`.
  [[nodiscard]] std::vector<std::optional<StatusReply>> status(std::chrono::milliseconds limit);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
