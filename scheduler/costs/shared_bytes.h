/// shared_bytes tells what a rank holds of a stage whose copies share weights, gradients and the
/// optimizer's state (Sharing).
///
///     level       kept by a rank of n     beside it in a step
///     Nothing     p + g + o               -
///     States      p + g + o/n             -
///     Gradients   p + (g + o)/n           two buckets of gradients
///     Weights     (p + g + o)/n           two buckets of gradients and of weights
///
/// Pure; any thread. Units: bytes.
#pragma once

#include <span>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/strategy/sharing.h"

namespace stagecraft {

/// The most bytes of a bucket (`train --bucket-size`).
inline constexpr auto kSharedBucket = static_cast<double>(kUsualBucketBytes);

/// FixedBytes is what one copy of a stage holds between tasks.
struct FixedBytes {
  double all = 0;      ///< weights, gradients, optimizer's state
  double trained = 0;  ///< the weights that train; their gradients take as much again
  double states = 0;   ///< the optimizer's state
};

/// Returns what a rank keeps of a stage with so many copies.
[[nodiscard]] double shared_bytes(const FixedBytes& fixed, Sharing sharing, int copies);

/// Returns the bytes beside that. `gradients`: bytes of the stages of one rank, each whole.
[[nodiscard]] double borrowed_bytes(std::span<const double> gradients, Sharing sharing);

/// Returns costs by which a search of one copy finds stages that fit: each parameter takes what a
/// rank keeps of it.
[[nodiscard]] Costs with_shared_parameters(Costs costs, Sharing sharing, int copies);

}  // namespace stagecraft
