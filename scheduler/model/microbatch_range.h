/// MicrobatchRange holds the microbatches of one stage that contain the samples of another stage's
/// microbatch, if the two take microbatches of different sizes (SG-4).
///
///     size 1   0 1 2 3 4 5     microbatch 1 of the stage of size 2 has samples of 2 and 3 above,
///     size 2   0   1   2       and of 0 and 1 below
///     size 3   0     1
///
/// The task graph uses it to find prerequisites, and lowering to find the transfers. A value.
#pragma once

#include <algorithm>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// MicrobatchRange holds the numbers from `begin` to before `end`.
struct MicrobatchRange {
  int begin = 0;
  int end = 0;

  friend constexpr bool operator==(const MicrobatchRange&, const MicrobatchRange&) = default;
};

/// Returns the step's microbatches that microbatch `m` of a stage of this size holds.
[[nodiscard]] constexpr MicrobatchRange in_step(Microbatch m, int size) {
  return {m.value * size, (m.value + 1) * size};
}

/// Returns the microbatches of a stage of size `other` that share a sample with microbatch `m` of a
/// stage of size `size`.
[[nodiscard]] constexpr MicrobatchRange overlapping(Microbatch m, int size, int other) {
  const auto [begin, end] = in_step(m, size);
  return {begin / other, (end + other - 1) / other};
}

/// Returns the intersection. Requires: they overlap.
[[nodiscard]] constexpr MicrobatchRange shared(MicrobatchRange a, MicrobatchRange b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

}  // namespace stagecraft
