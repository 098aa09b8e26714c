/// ComputeInFlight: how many samples a stage keeps between forward and backward so that a stage
/// which it feeds never waits for it, where the two take microbatches of different sizes or groups.
///
/// With forwards and backwards of equal length it is the smallest such number. Pure; any thread.
/// Source: Jeon et al., "GraphPipe", App. A.1, rounded up to whole microbatches.
#pragma once

#include <span>
#include <vector>

#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// How a stage alternates: `group` forwards, then as many backwards, each of `size` samples.
struct StagePace {
  int group = 1;
  int size = 1;

  friend constexpr bool operator==(const StagePace&, const StagePace&) = default;
};

/// The ten rows of the table alone: not yet whole microbatches of `x`. Where backwards are longer
/// than forwards it is one microbatch short from groups of 3 on.
[[nodiscard]] int tabled_in_flight(const StagePace& x, const StagePace& y, int in_flight);

/// Returns the samples in flight of a stage of pace `x` that feeds one of pace `y`, which has
/// `in_flight` of them; a multiple of `x.size`.
/// From groups of 3 on GraphPipe's table can be short: of equal paces a stage has one group more
/// than its consumer (Wang et al., "Ada-Grouper"), of others what has always been enough.
[[nodiscard]] int compute_in_flight(const StagePace& x, const StagePace& y, int in_flight);

/// The same of a stage that feeds nobody: one group.
[[nodiscard]] constexpr int sink_in_flight(const StagePace& pace) {
  return pace.group * pace.size;
}

/// By stage of a graph where each has a pace: the fewest samples with which none waits for one that
/// feeds it. Requires: acyclic.
[[nodiscard]] std::vector<int> samples_in_flight(const StageGraph& stages,
                                                 std::span<const StagePace> paces);

}  // namespace stagecraft
