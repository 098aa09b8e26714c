/// RankMemory is what one rank of a plan holds: between steps, and at most beside that in one.
/// It is known before the run. Units: bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

struct RankMemory {
  std::int64_t weights = 0;    ///< those that copies share or divide: this rank's part
  std::int64_t gradients = 0;  ///< likewise
  std::int64_t states = 0;     ///< likewise: of the optimizer, with masters and averages
  /// Whole gradients and weights of two buckets, or the sums of this rank's part.
  std::int64_t borrowed = 0;
  std::int64_t activations = 0;
  /// The sums come when the activations are gone: once a step, of the rank's only stage.
  bool borrows_at_end = false;

  /// Returns the most that a step holds at once beside weights, gradients and states.
  [[nodiscard]] std::int64_t in_step() const {
    return borrows_at_end ? std::max(borrowed, activations) : borrowed + activations;
  }
  /// Returns the most that it holds at once.
  [[nodiscard]] std::int64_t sum() const { return weights + gradients + states + in_step(); }
};

/// Returns the memory by rank.
[[nodiscard]] std::vector<RankMemory> memory_of_ranks(const Execution& execution,
                                                      const OptimizerOptions& optimizer);

}  // namespace stagecraft::tools
