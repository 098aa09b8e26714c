/// Mirror keeps copies of this rank's committed states and of those of the rank before it, so that
/// a lost rank gets its state back without a checkpoint. mirror_keeper.h says which copies it
/// keeps, and why they suffice.
///
/// The executor makes it if TrainerOptions::mirror is set, and uses it on its plan thread.
/// MR-1: no call waits here. A copy is made between two steps, as the next step writes to the
///       living tensors. It is then sent off, and taken in once it has arrived.
/// MR-2: a failure here costs a recovery point, never a step: the first in a row is logged, and the
///       last recovery point stays until the next round.
/// MR-3: copies outlive the abort of a step: their tags belong to a plan of their own, whose epoch
///       ends when all ranks get another state.
/// MR-4: in a process that outlives its driver, copies are left for the next driver of the same run
///       (LeftCopies). A rank there lists them, and only them, until its run goes on: from a state
///       of them, or from another one. It lists those of its own states whose facts it has been
///       told, which are told with the state itself if it is taken over, else with the order of the
///       next step: a copy is dropped only by the vote of a later step, or for a state that is
///       taken over, so the ranks have one state in common of which each knows the facts.
/// Cost: memory for two packed copies of the own state and two of a neighbor's, and bandwidth for
///       one of them per step. Between threads of a process, sender and keeper share them: two in
///       all.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/mirror/left_copies.h"
#include "stagecraft/actors/executor/mirror/mirror_keeper.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class Mirror {
 public:
  /// `left`: of the process; null if it ends with its driver.
  /// Errors: UsageArgument unless at least two ranks vote.
  Mirror(const RankSetup& setup,
         std::shared_ptr<Transport> transport,
         std::shared_ptr<LeftCopies> left = nullptr);
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  /// Keeps MR-4.
  ~Mirror();

  /// Called when this rank, like all ranks, has taken over `state`, the state after `updates`
  /// updates, by the transfer `request`. Drops the copies made before, except those of the state
  /// after `kept` updates, if given, and begins a new round. `facts`: as for note().
  void restart(Submission request,
               std::int64_t updates,
               std::optional<std::int64_t> kept,
               const std::vector<NamedTensor>& state,
               const std::string& facts);

  /// Drops all copies: they may be of another state than those of other ranks from now on.
  void forget();

  /// Notes what only the driver knows of the state after `updates` updates.
  void note(std::int64_t updates, const std::string& facts);

  /// Called when a step has changed weights: `state` is the one after `updates` updates. Begins a
  /// round, unless one is in progress.
  void committed(Submission step, std::int64_t updates, const std::vector<NamedTensor>& state);

  /// Returns the round for the ballot; agreed() takes the result of the vote.
  [[nodiscard]] Submission newest_kept();
  void agreed(Submission oldest);

  [[nodiscard]] MirrorStock stock();
  /// Returns the facts of each of its own states; empty if they are of this trainer.
  [[nodiscard]] std::vector<std::string> left_facts() const;
  /// Returns a packed copy (packed_state.h). Errors: WorkerLost if there is none.
  [[nodiscard]] at::Tensor own(std::int64_t updates) const;
  [[nodiscard]] at::Tensor kept(std::int64_t updates) const;

 private:
  void begin(Submission round, std::int64_t updates, const std::vector<NamedTensor>& state);
  void take_left(const std::vector<NamedTensor>& state);
  void drop_left();
  [[nodiscard]] const MirrorKeeper& present() const { return left_ ? left_->copies : keeper_; }
  [[nodiscard]] at::Tensor make_copy(const std::vector<NamedTensor>& state);
  void take_in();
  void fail(const std::exception_ptr& failure);

  const Rank self_;
  const PlanId plan_;
  const std::string run_;
  const std::shared_ptr<Transport> transport_;
  Rank before_, keeper_rank_;
  Epoch epoch_;
  MirrorKeeper keeper_;
  std::map<std::int64_t, std::string> facts_;  ///< of the states in it
  const std::shared_ptr<LeftCopies> process_;
  std::string layout_;                      ///< of the state
  std::optional<LeftCopies::OfRank> left_;  ///< by the trainer before, until this one goes on
  Future<at::Tensor> arriving_;  ///< of the round in progress; invalid after it was taken in
  at::Tensor last_, spare_;      ///< the newest copy, and the one before it: memory for the next
  bool has_failed_ = false;      ///< in the last round
};

}  // namespace stagecraft
