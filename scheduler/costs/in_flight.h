/// compute_in_flight returns the number of samples that a stage keeps between forward and backward
/// so that its consumer never waits for it, if the two take microbatches of different sizes or
/// groups.
///
/// With forwards and backwards of equal length it is the smallest number with that property. Pure;
/// any thread. Source: Jeon et al., "GraphPipe", App. A.1, rounded up to whole microbatches.
#pragma once

#include <span>
#include <vector>

#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// StagePace is the rhythm of a stage: `group` forwards, then as many backwards, each of `size`
/// samples.
struct StagePace {
  int group = 1;
  int size = 1;

  friend constexpr bool operator==(const StagePace&, const StagePace&) = default;
};

/// Returns the value of the table's ten rows, not yet rounded to whole microbatches of `x`. If
/// backwards are longer than forwards, it is one microbatch short for groups of 3 and more.
[[nodiscard]] int tabled_in_flight(const StagePace& x, const StagePace& y, int in_flight);

/// Returns the samples in flight of a stage with pace `x` that feeds a stage with pace `y` and
/// `in_flight` samples; a multiple of `x.size`.
/// For groups of 3 and more GraphPipe's table can be too small. For equal paces a stage then has
/// one group more than its consumer (Wang et al., "Ada-Grouper"); for other paces it has a number
/// that has always been enough.
[[nodiscard]] int compute_in_flight(const StagePace& x, const StagePace& y, int in_flight);

/// Returns the samples in flight of a stage that feeds no other: one group.
[[nodiscard]] constexpr int sink_in_flight(const StagePace& pace) {
  return pace.group * pace.size;
}

/// Returns, by stage, the fewest samples with which no stage waits for a stage that feeds it. Each
/// stage of the graph has a pace.
/// Requires: acyclic.
[[nodiscard]] std::vector<int> samples_in_flight(const StageGraph& stages,
                                                 std::span<const StagePace> paces);

}  // namespace stagecraft
