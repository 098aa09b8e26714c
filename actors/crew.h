/// Crew: the actors of one trainer, a driver and two per rank, with the data plane between them.
/// The trainer's only way to them; knows nothing of modules or files, nor of where a rank runs: its
/// binding, with workers and network, comes from the cluster's launcher.
///
/// CR-1: ending a crew takes at most its deadline: transports are closed first, by the ranks'
///       agents, so that nobody waits for a tensor and no rank begins another instruction; whoever
///       is still busy then is left behind with what it uses, and parked when the process ends.
/// CR-2: once the process ends, or in a child of fork(), nobody is waited for.
/// CR-3: no wait lasts longer than the worker it waits for: when that is lost, the wait fails with
///       WorkerLost and the cause.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/rank_variant.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/messages.h"
#include "stagecraft/actors/step_ledger.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

class Launcher;

class Crew {
 public:
  /// Launches everybody, hands out plan and weights and waits until every rank is ready. Weights
  /// are those of the program. The job's plan id is drawn here.
  /// Errors: those of a rank that cannot be; ClusterTimeout.
  Crew(Launcher& launcher, std::shared_ptr<StepLedger> ledger, Job job);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Takes on the workers that stand in the places of others by now: they get plan and setup, and
  /// their state is to be written. Requires: no step is under way. Errors: as the constructor.
  void mend();

  /// Has every rank take on its stages for another shape, and those that stand in the places of
  /// others later. Waits for the steps under way. Errors: those of a rank that cannot;
  /// UsageArgument for what cannot travel to its process. Then steps must not ask for it.
  void add_variant(std::shared_ptr<const JobVariant> variant);

  /// Tells the driver that the ledger has a step for it.
  void submit(Submission submission);

  /// What every rank keeps, by rank.
  [[nodiscard]] std::vector<StateListing> list_state();
  /// Copies of what every rank keeps, by rank, in the order of the listings.
  [[nodiscard]] std::vector<std::vector<StateTensor>> read_state();
  /// Likewise of the gradients of its last update.
  [[nodiscard]] std::vector<std::vector<StateTensor>> read_gradients();
  /// Replaces the state of every rank; `state` as read_state returns it, after `updates` updates.
  void write_state(const std::vector<std::vector<StateTensor>>& state, std::int64_t updates);
  /// Has every rank take over its copy of this state, a lost one from its keeper.
  void take_mirrors(const RecoveryPoint& point);

  /// Waits for a tensor that the rank sends. Returns false at the deadline. Errors: WorkerLost
  /// where the rank ends before it has come.
  [[nodiscard]] bool wait(Rank rank, const Future<at::Tensor>& awaited, Deadline deadline) const;

  /// What each rank is doing, by rank; nothing for one whose agent is gone or silent.
  [[nodiscard]] std::vector<std::optional<StatusReply>> status();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
