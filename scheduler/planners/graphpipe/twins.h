/// Twins: chains of operators that are branches of one another's kind, so that a set of operators
/// may as well hold the beginning of one as that of the other.
///
/// Found in the tree of a graph; empty for a graph without one. Only chains whose operators cost
/// the same and have the same edges are twins. For the search over downsets. A value.
#pragma once

#include <bitset>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/partition.h"

namespace stagecraft::graphpipe {

inline constexpr int kMostDownsetOperators = 256;
using OperatorSet = std::bitset<kMostDownsetOperators>;

class Twins {
 public:
  /// Requires: no more operators than a set holds.
  static Twins of(const PartitionProblem& problem);

  /// All operators, consumers first, each chain in one piece, and the first of twins before others.
  [[nodiscard]] const std::vector<int>& order() const { return order_; }

  /// What the twin before that of `op` has in its place; -1: it is in the first, or in none.
  [[nodiscard]] int before(int op) const { return before_[static_cast<std::size_t>(op)]; }
  /// Whether `downset` has as much of the chain of `op` as of the twin before. Requires: there is
  /// one.
  [[nodiscard]] bool equal_before(int op, const OperatorSet& downset) const;

  /// Of twins the first holds the most then.
  [[nodiscard]] OperatorSet sorted(const OperatorSet& downset) const;
  /// By operator of sorted(downset), the one of `downset` in its place.
  [[nodiscard]] std::vector<int> places(const OperatorSet& downset) const;

 private:
  using Chain = std::vector<int>;

  std::vector<int> order_;
  std::vector<int> before_;
  std::vector<int> kin_;    // by operator: which list of twins, -1: none
  std::vector<int> chain_;  // by operator: which of these
  std::vector<std::vector<Chain>> twins_;
};

}  // namespace stagecraft::graphpipe
