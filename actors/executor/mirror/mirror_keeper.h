/// MirrorKeeper holds the copies of committed states that one rank keeps, of itself and of the rank
/// before it, so that the loss of any one rank loses no committed state of the model.
///
/// The voting ranks form a ring; each sends its copies to the next rank, its keeper. Copies are
/// made in rounds, one committed state per round. In a round, every rank copies its own state,
/// sends the copy, and takes in the copy of the rank before it. Mirror owns the keeper, copies and
/// sends. The keeper knows no transport and may be copied; the exhaustive test of MI-1 relies on
/// that.
///
///   none --begin--> under way --agreed: all ranks have it--> settled     the one before is dropped
///    ^                  |
///    '--agreed: failed--'                                             the one before stays
///
/// MI-1: after the loss of any one rank at any moment there is a state of which the lost rank's
///       keeper has the lost rank's copy, and every other rank its own. choose_recovery() finds the
///       newest one. Proof: a round n settles by a vote in which every ballot said that its rank
///       has the copy of the rank before it in n (MI-2). A rank that says so began n itself, so it
///       also has its own copy. So if one rank has n settled, all ranks have n whole, settled or in
///       progress. A rank drops n only when a later round settles, and by the same argument all
///       ranks have that one whole. So the newest round that is settled on any rank is whole on all
///       ranks, and one settles by the first vote after all copies of the first round have arrived.
///       A rank that dies takes only its own parts: of every round its own copy, which its keeper
///       has, and the copy of the rank before it, which that rank has itself. A copy that it sent
///       but that has not arrived is no whole copy and counts for no rank. A round that is
///       given up has settled nowhere.
///       A recovery goes back to the newest state of which there are copies, and a state that no
///       rank needs from its keeper may have copies that are still on their way there. So all ranks
///       keep the newest state that is whole, but for the copies of a rank that was lost
///       (RecoveryPoint::kept), until the next round settles.
/// MI-2: a ballot names the newest round whose copy of the rank before is here, whole; the vote
///       tells all ranks the oldest round named. So all ranks that continue agree whether a round
///       is in progress, and begin the same rounds. No rank ever waits for a copy: while one is
///       slow, no further round begins, and the recovery point is that many steps older. A ballot
///       says too that a copy cannot be made or sent, or will not come. Then all ranks give the
///       round up at once, and begin another one.
/// MI-3: at most two rounds are kept: at most two copies of the own state and two of a neighbor's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"

namespace stagecraft {

class MirrorKeeper {
 public:
  /// Forgets everything, except whole copies of the state after `kept` updates, if given.
  void restart(std::optional<std::int64_t> kept);

  [[nodiscard]] bool round_under_way() const { return under_way_.has_value(); }
  /// Begins a round. Requires: no round is in progress. `round`: the same on all ranks, later than
  /// the last.
  void begin(Submission round, std::int64_t updates, at::Tensor own);
  /// Takes the copy of the rank before in the round in progress.
  void arrived(at::Tensor copy);
  /// Notes that the round in progress cannot become whole.
  void failed();

  /// Returns the round for the ballot (MI-2); -1 while there is none, -2 if one has failed.
  [[nodiscard]] Submission newest_kept() const;
  /// Takes the result of the vote: every rank's newest_kept() is `oldest` or later. Returns whether
  /// the round in progress has settled.
  bool agreed(Submission oldest);

  /// Return the states of which there is a copy of this rank, or of the rank before it, as their
  /// numbers of updates; ascending.
  [[nodiscard]] std::vector<std::int64_t> own_states() const;
  [[nodiscard]] std::vector<std::int64_t> kept_states() const;

  /// Return the copies; undefined if there is none.
  [[nodiscard]] at::Tensor own(std::int64_t updates) const;
  [[nodiscard]] at::Tensor kept(std::int64_t updates) const;

 private:
  struct Round {
    Submission id;
    std::int64_t updates = 0;
    at::Tensor own;
    at::Tensor kept;  ///< of the rank before; undefined until it arrives
    bool has_failed = false;
  };

  [[nodiscard]] std::vector<std::int64_t> states(at::Tensor Round::*copy) const;
  [[nodiscard]] at::Tensor find(std::int64_t updates, at::Tensor Round::*copy) const;

  std::optional<Round> settled_, under_way_;
};

/// MirrorStock lists the states of which one rank has copies.
struct MirrorStock {
  std::vector<std::int64_t> own, kept;
};

/// RecoveryPoint is a state to which all ranks can go back.
struct RecoveryPoint {
  std::int64_t updates = 0;
  std::vector<bool> lost;  ///< by rank: it has no copy of its own; the next rank of the ring has it
  /// The state whose copies all ranks keep until new ones of `updates` are whole: the newest of
  /// which every rank has its copies, but for those that a lost rank had; `updates` if there is
  /// none.
  std::int64_t kept = 0;
};

/// Returns the newest such state. `stocks`: of all ranks in the ring's order; a replaced rank has
/// none.
/// Errors: WorkerLost if there is none, with the missing copies.
[[nodiscard]] RecoveryPoint choose_recovery(const std::vector<MirrorStock>& stocks);

}  // namespace stagecraft
