/// balanced_cut divides a row of operators or layers into stages of nearly equal length.
///
///     times  3 1 2 | 5 1 | 2 4      into 3 stages: each takes 6, and no cut has a smaller maximum
///
/// Models and planners that cut a chain use it. It knows nothing of costs and schedules. Pure; any
/// thread.
/// BC-1: no other cut has a smaller largest stage, apart from the allowed slack. Among the cuts
///       within the slack, no cut hands over fewer bytes. Among those, no cut has smaller stages at
///       the end, so the first stages take the remainder of an uneven division. Among those, the
///       cut is the earliest.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace stagecraft {

struct CutItem {
  double time = 1;
  double bytes = 0;  ///< bytes that its stage holds for it
  double crossing =
      0;  ///< bytes that this stage hands to the next if this item is the last of its stage
};

/// ItemRange holds the items [first, last) of a stage.
using ItemRange = std::pair<std::size_t, std::size_t>;

/// Returns the items of every stage; no stage is empty. Keeps BC-1 among the cuts in which no stage
/// holds more than `memory_cap` bytes. `slack`: the fraction by which the largest stage may exceed
/// the minimum if fewer bytes cross then. It serves measured times, which are not exact.
/// Errors: UsageArgument for fewer items than stages, for a number that is negative, not finite or
/// too large in total, and for a cap that this number of stages cannot keep.
/// Cost: the items of a stage, times the number of items that it can begin with, times stages. The
/// cost is small if stages have hardly any choice.
[[nodiscard]] std::vector<ItemRange> balanced_cut(
    std::span<const CutItem> items,
    int stages,
    double memory_cap = std::numeric_limits<double>::infinity(),
    double slack = 0);

}  // namespace stagecraft
