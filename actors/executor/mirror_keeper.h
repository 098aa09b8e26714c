/// MirrorKeeper: the copies of committed states that one rank keeps, of itself and of the rank
/// before it, so that the loss of any one rank loses no committed state of the model.
///
/// The voting ranks form a ring; each sends its copies to the next, its keeper. Copies are made in
/// rounds. A round is of one committed state: every rank copies its own, sends the copy, and takes
/// in that of the rank before it. Owned by Mirror, which does the copying and sending; it knows no
/// transport and may be copied, which the exhaustive test of MI-1 lives on.
///
///   none --begin--> under way --agreed: everybody has it--> settled     the one before is dropped
///
/// MI-1: after the loss of any one rank at any moment there is a state of which the lost rank's
///       keeper has the lost rank's copy, and every other rank its own. choose_recovery() finds the
///       newest such. Proof: while anybody has round n settled, everybody has n whole, settled or
///       under way: it settles by a vote in which every ballot said that its rank has the copy
///       before it in n (MI-2), and a rank that says so began n itself and so has its own copy
///       also. It is dropped only where a later round settles, and by the same argument everybody
///       has that one whole. So the newest round that is settled anywhere is whole everywhere, and
///       one settles by the first vote after all copies of the first round have arrived. A rank
///       that dies takes its own parts only: of every round its own copy, which its keeper has, and
///       the copy of the rank before it, which that one has itself. What it had sent and what has
///       not arrived is no whole copy and counts for nobody.
/// MI-2: a ballot names the newest round of which the copy of the rank before is here, whole; the
///       vote tells everybody the oldest one named. So all ranks that go on agree whether a round
///       is under way and begin the same ones, and nobody ever waits for a copy: while one is slow,
///       no further round begins, and the recovery point stays behind by as many steps.
/// MI-3: at most two rounds are kept: at most two copies of the own state and two of a neighbour's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"

namespace stagecraft {

class MirrorKeeper {
 public:
  /// Forgets everything, but for whole copies of the state after `kept` updates, if given.
  void restart(std::optional<std::int64_t> kept);

  [[nodiscard]] bool round_under_way() const { return under_way_.has_value(); }
  /// Requires: no round is under way. `round`: the same on all ranks, later than the last.
  void begin(Submission round, std::int64_t updates, at::Tensor own);
  /// The rank before has sent its copy in the round under way.
  void arrived(at::Tensor copy);

  /// For the ballot (MI-2); -1 while there is none.
  [[nodiscard]] Submission newest_kept() const;
  /// Every rank's newest_kept() is `oldest` or later.
  void agreed(Submission oldest);

  /// The states of which there is a copy of this rank, and of the rank before it: how many updates
  /// they are after; ascending.
  [[nodiscard]] std::vector<std::int64_t> own_states() const;
  [[nodiscard]] std::vector<std::int64_t> kept_states() const;

  /// The copies; undefined where there is none.
  [[nodiscard]] at::Tensor own(std::int64_t updates) const;
  [[nodiscard]] at::Tensor kept(std::int64_t updates) const;

 private:
  struct Round {
    Submission id;
    std::int64_t updates = 0;
    at::Tensor own;
    at::Tensor kept;  ///< of the rank before; undefined until it arrives
  };

  [[nodiscard]] std::vector<std::int64_t> states(at::Tensor Round::*copy) const;
  [[nodiscard]] at::Tensor find(std::int64_t updates, at::Tensor Round::*copy) const;

  std::optional<Round> settled_, under_way_;
};

/// What one rank has.
struct MirrorStock {
  std::vector<std::int64_t> own, kept;
};

/// A state to which all ranks can go back.
struct RecoveryPoint {
  std::int64_t updates = 0;
  std::vector<bool> lost;  ///< by rank: has no copy of its own; the next rank of the ring has it
};

/// The newest there is. `stocks`: of all ranks in the ring's order; a replaced rank has nothing.
/// Errors: WorkerLost when there is none, saying what is missing.
[[nodiscard]] RecoveryPoint choose_recovery(const std::vector<MirrorStock>& stocks);

}  // namespace stagecraft
