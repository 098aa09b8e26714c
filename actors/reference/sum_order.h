/// SumOrder holds the order in which the ranks of a plan add up the gradients of a step, for a
/// reference that adds them in the same order.
///
/// Each copy of a stage adds the gradients of its microbatches one after the other. Copies on one
/// rank are then added in their order, and the ranks in ascending order (SU-1). If the stage's
/// copies sum in rounds (P-11), they do so in each round of each batch, and the sums of rounds are
/// added one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

struct SumOrder {
  using Microbatches = std::vector<std::int32_t>;  ///< of the step, one after the other
  using RankSum = std::vector<Microbatches>;       ///< by copy on the rank
  using Round = std::vector<RankSum>;              ///< by rank
  std::vector<std::vector<Round>> stages;          ///< by stage of the program
  std::set<std::size_t> in_rounds;                 ///< the stages whose copies sum in rounds
  bool differs_by_chunk = false;  ///< chunks of a stage have other rounds: nothing can follow
  std::set<Microbatches> chains;  ///< the orders in which chunks are added up

  /// Returns whether all microbatches of every stage are added one after the other.
  [[nodiscard]] bool is_plain() const;

  /// Returns the microbatches of a step in an order that all sums of all stages follow; nothing if
  /// there is none.
  [[nodiscard]] std::optional<Microbatches> common_order(std::int32_t microbatches) const;
};

/// Returns the order. Requires: a training plan.
[[nodiscard]] SumOrder sum_order_of(const Plan& plan);

}  // namespace stagecraft
