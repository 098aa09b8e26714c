/// balanced_cut: a row of operators or layers divided into stages of nearly the same length.
///
///     times  3 1 2 | 5 1 | 2 4      into 3 stages: each takes 6, and no cut does with less
///
/// For models and planners that cut a chain; what costs are, and what a schedule makes of them, is
/// theirs. Pure; any thread.
/// BC-1: no other cut has a smaller largest stage, beyond the slack that is allowed; of those
///       within it none hands over fewer bytes; of these none has smaller stages at the end, so
///       that what does not divide evenly is in the first stages; of these it is the earliest.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace stagecraft {

struct CutItem {
  double time = 1;
  double bytes = 0;  ///< that its stage holds for it
  double crossing =
      0;  ///< bytes that the next stage is handed where this item is the last of its own
};

/// The items [first, last) of a stage.
using ItemRange = std::pair<std::size_t, std::size_t>;

/// Returns the items of every stage; none is empty. Keeps BC-1 among the cuts in which no stage
/// holds more than `memory_cap` bytes. `slack`: by which part the largest stage may be larger than
/// it must be, where fewer bytes cross then; for times that are measured, and so not exact.
/// Errors: UsageArgument for fewer items than stages, a number that is negative, not finite or
///         together too large, and a cap under which so many stages do not suffice.
/// Cost: the items of a stage, times how many items it can begin with, times stages; little where
/// stages have hardly any choice.
[[nodiscard]] std::vector<ItemRange> balanced_cut(
    std::span<const CutItem> items,
    int stages,
    double memory_cap = std::numeric_limits<double>::infinity(),
    double slack = 0);

}  // namespace stagecraft
