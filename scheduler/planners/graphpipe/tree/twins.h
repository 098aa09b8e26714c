/// Twins are chains of operators that are equivalent branches: a set of operators may hold the
/// beginning of either.
///
/// They are found in the tree of a graph; a graph without one has no twins. Chains are twins only
/// if their operators cost the same and have the same edges. The search over downsets uses them. A
/// value.
#pragma once

#include <bitset>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition_problem.h"

namespace stagecraft::graphpipe {

inline constexpr int kMostDownsetOperators = 256;
using OperatorSet = std::bitset<kMostDownsetOperators>;

class Twins {
 public:
  /// Requires: at most kMostDownsetOperators operators.
  static Twins of(const PartitionProblem& problem);

  /// Returns all operators, consumers first, each chain in one piece, and the first of twins before
  /// the others.
  [[nodiscard]] const std::vector<int>& order() const { return order_; }

  /// Returns the operator in the place of `op` in the previous twin; -1 if `op` is in the first
  /// twin, or in none.
  [[nodiscard]] int before(int op) const { return before_[static_cast<std::size_t>(op)]; }
  /// Returns whether `downset` has as much of the chain of `op` as of the previous twin.
  /// Requires: there is one.
  [[nodiscard]] bool equal_before(int op, const OperatorSet& downset) const;

  /// Returns the downset with its twins exchanged so that the first holds the most.
  [[nodiscard]] OperatorSet sorted(const OperatorSet& downset) const;
  /// Returns, by operator of sorted(downset), the operator of `downset` in its place.
  [[nodiscard]] std::vector<int> places(const OperatorSet& downset) const;

 private:
  using Chain = std::vector<int>;

  std::vector<int> order_;
  std::vector<int> before_;
  std::vector<int> kin_;    // by operator: its list of twins; -1: none
  std::vector<int> chain_;  // by operator: its chain within that list
  std::vector<std::vector<Chain>> twins_;
};

}  // namespace stagecraft::graphpipe
