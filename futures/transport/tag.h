/// Tag identifies a tensor. It is the same on both ends of a transfer.
///
/// It contains no rank: sender and receiver are given separately, so a plan's tags survive another
/// binding of ranks to workers. The plan id separates trainers that share a worker, each of which
/// counts its epochs and submissions from 0. The epoch makes a late tensor of an aborted step
/// recognizable.
/// TG-1: edges of a plan are 0 and above; negative edges belong to the collectives
///       (collective/transport_collective.cc), and the lowest of all to ranks that connect their
///       devices.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// The epoch of tensors that belong to no step. Only the close of the transport ends it, no abort.
inline constexpr Epoch kEndlessEpoch{std::numeric_limits<std::int64_t>::max()};

struct Tag {
  PlanId plan;
  Epoch epoch;
  Submission submission;
  EdgeId edge;
  Microbatch microbatch;

  friend constexpr auto operator<=>(const Tag&, const Tag&) = default;
};

/// Returns "edge 3, microbatch 2, submission 7, epoch 1, plan 5".
[[nodiscard]] std::string to_string(const Tag& tag);

/// Mixes `value` into `seed`; order matters. Ids are small and dense, so every bit must be spread.
[[nodiscard]] constexpr std::size_t hash_combine(std::size_t seed, std::int64_t value) {
  std::uint64_t x = (seed ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 32U;
  return static_cast<std::size_t>(x);
}

}  // namespace stagecraft

template <>
struct std::hash<stagecraft::Tag> {
  std::size_t operator()(const stagecraft::Tag& tag) const noexcept {
    std::size_t seed = 0;
    seed = stagecraft::hash_combine(seed, tag.plan.value);
    seed = stagecraft::hash_combine(seed, tag.epoch.value);
    seed = stagecraft::hash_combine(seed, tag.submission.value);
    seed = stagecraft::hash_combine(seed, tag.edge.value);
    return stagecraft::hash_combine(seed, tag.microbatch.value);
  }
};
