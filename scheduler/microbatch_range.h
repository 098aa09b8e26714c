/// MicrobatchRange: which microbatches of one stage hold the samples of another's, where the two
/// take microbatches of different sizes (SG-4).
///
///     size 1   0 1 2 3 4 5     microbatch 1 of the stage of size 2 has samples of 2 and 3 above,
///     size 2   0   1   2       and of 0 and 1 below
///     size 3   0     1
///
/// Asked by the task graph, which tasks wait for which, and by lowering, what crosses. A value.
#pragma once

#include <algorithm>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// From `begin` to before `end`.
struct MicrobatchRange {
  int begin = 0;
  int end = 0;

  friend constexpr bool operator==(const MicrobatchRange&, const MicrobatchRange&) = default;
};

/// Microbatch `m` of a stage of this size, in the step's own.
[[nodiscard]] constexpr MicrobatchRange in_step(Microbatch m, int size) {
  return {m.value * size, (m.value + 1) * size};
}

/// The microbatches of a stage of size `other` that share a sample with microbatch `m` of one of
/// size `size`.
[[nodiscard]] constexpr MicrobatchRange overlapping(Microbatch m, int size, int other) {
  const auto [begin, end] = in_step(m, size);
  return {begin / other, (end + other - 1) / other};
}

/// What both have. Requires: they overlap.
[[nodiscard]] constexpr MicrobatchRange shared(MicrobatchRange a, MicrobatchRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

}  // namespace stagecraft
