/// StateTransfer moves the state of a crew's ranks: to the trainer, from it, and from a neighbor
/// that keeps a copy. Names travel in messages, tensors over the data plane.
///
/// A crew has one. The thread of the trainer's caller uses it, while no step is in progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "stagecraft/actors/crew/crew_workers.h"
#include "stagecraft/actors/crew/rank_state.h"
#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class StateTransfer {
 public:
  /// `epoch`: the newest epoch of the crew that was begun. Views `workers`.
  StateTransfer(PlanId plan,
                const CrewWorkers& workers,
                std::shared_ptr<Transport> here,
                std::shared_ptr<StepLedger> ledger,
                std::shared_ptr<std::atomic<std::int64_t>> epoch);

  /// Returns the list of each rank's state, by rank.
  [[nodiscard]] std::vector<StateListing> list() const;
  /// Returns copies of these tensors, in the order of the picks and their positions. No rank may
  /// occur twice. Errors: WorkerLost; ClusterTimeout for a tensor that does not come.
  [[nodiscard]] std::vector<std::vector<StateTensor>> read(
      const std::vector<StatePick>& picks) const;
  /// Returns likewise the gradients of the last update, by rank.
  [[nodiscard]] std::vector<std::vector<StateTensor>> read_gradients() const;
  /// Replaces the state of every rank by that after `updates` updates, which the ranks have had.
  /// Holds the state of one rank at a time. Nothing has changed if the first call of `state_of`
  /// throws.
  /// `facts`: of the state (TakeState::facts); asked for after `forgotten`.
  /// With `forgotten` it may be a state that they have not had: as many updates need not give its
  /// bits. Then all ranks forget theirs before the first takes its part, and `forgotten` is called.
  void write(const StateOfRank& state_of,
             std::int64_t updates,
             const std::function<std::string()>& facts,
             const std::function<void()>& forgotten = nullptr) const;
  /// Makes every rank restore its copy of this state. A lost rank gets it from its keeper.
  void take_mirrors(const RecoveryPoint& point, const std::string& facts) const;

 private:
  [[nodiscard]] std::vector<StateListing> ask(const std::vector<StatePick>& picks,
                                              SendState what) const;
  [[nodiscard]] std::vector<std::vector<StateTensor>> read(const std::vector<StatePick>& picks,
                                                           const SendState& what) const;
  void announce(Submission request) const;
  [[nodiscard]] Rank keeper_of(Rank rank) const;
  [[noreturn]] void end_exchange(const Error& why,
                                 const std::vector<Asked<StateTaken>>& taken) const;

  const PlanId plan_;
  const CrewWorkers& workers_;
  const std::shared_ptr<Transport> here_;
  const std::shared_ptr<StepLedger> ledger_;
  const std::shared_ptr<std::atomic<std::int64_t>> epoch_;
};

}  // namespace stagecraft
