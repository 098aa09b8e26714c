/// vote is the exchange of all ranks after their last backward, before any weight changes.
/// Afterwards all ranks know whether all gradients are finite, and the norm of the whole model's
/// gradient.
///
/// It is the commit point of a step: a rank that failed before it never votes, so no rank updates.
/// VO-1: the norm is the root of the squared norms, added one by one in double precision in the
///       model's order of parameters. It does not depend on the cut, the ranks or the order of
///       arrival, so clipping is bit-equal for any cut.
/// VO-2: with up to kVoteAtOnce ranks, each hears from all others. More ranks vote in two rounds:
///       first in the rows of a square, then in its columns. So each hears from about twice the
///       square root of their number: 62 of 1,024.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

inline constexpr std::size_t kVoteAtOnce = 16;

/// SquaredNorm belongs to one parameter's gradient; `parameter` is its index in the model's order.
struct SquaredNorm {
  std::int64_t parameter = 0;
  double value = 0.0;
};

/// Ballot is the report of one rank about its own parameters. It leaves out frozen parameters.
struct Ballot {
  std::int64_t model_parameters = 0;  ///< parameters of the whole model; the same on every rank
  bool finite = true;                 ///< false for a non-finite loss as well as for a gradient
  std::vector<SquaredNorm> squared_norms;
  std::int64_t mirrored = -1;  ///< the newest round of mirroring whose part this rank has
  Rank rank;                   ///< the rank that reports
};

struct VoteResult {
  bool all_finite = true;  ///< every ballot is finite, and so is every squared norm
  double total_norm = 0.0;
  std::optional<std::int64_t> first_non_finite_parameter;  ///< lowest index in the model's order
  std::optional<Rank> first_non_finite_rank;  ///< lowest rank that found something not finite
  std::int64_t mirrored = -1;                 ///< the lowest of all ballots
};

/// Votes and returns the result of the whole group: the same on every member, bit by bit. Uses
/// numbers of the group from `sequence` on. Errors: those of Collective::all_gather and its wait;
/// Internal if two ranks vote for one parameter, or a rank votes for a parameter that the model
/// does not have.
[[nodiscard]] VoteResult vote(Collective& collective,
                              const Group& group,
                              const Sequence& sequence,
                              const Ballot& ballot,
                              Deadline deadline);

}  // namespace stagecraft
