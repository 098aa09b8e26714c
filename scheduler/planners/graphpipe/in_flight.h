/// compute_in_flight: how many samples a stage holds activations of, so that the stage that it
/// feeds never waits for it.
///
///     sizes 1 -> 2 -> 4, one microbatch a turn: 10 <- 8 <- 4 samples in flight
///
/// Pure; any thread. Source: GraphPipe (Jeon et al.), appendix A.1, in whose table rows 1, 3, 5 and
/// 8 are a microbatch short where a backward takes two forwards and a stage takes turns of more
/// than two microbatches: there the bound holds that always suffices.
#pragma once

namespace stagecraft::graphpipe {

/// How a stage works on a step: `turn` forwards of so many samples each, then as many backwards.
struct Turns {
  int size = 1;  ///< samples of a microbatch
  int turn = 1;  ///< microbatches

  friend bool operator==(const Turns&, const Turns&) = default;
};

/// The table itself, which is not yet a multiple of `own.size`.
[[nodiscard]] int tabled_in_flight(Turns own, Turns next, int next_in_flight);

/// Samples in flight that suffice at any turns, where F : B is between 2 : 1 and 1 : 3; not yet a
/// multiple of `own.size`.
[[nodiscard]] int sufficient_in_flight(Turns own, Turns next, int next_in_flight);

/// Returns the samples in flight of a stage whose consumer has `next_in_flight`: the table for
/// turns up to 2, else the bound; a multiple of `own.size`. Of several consumers the largest
/// counts.
[[nodiscard]] int compute_in_flight(Turns own, Turns next, int next_in_flight);

/// The same of a stage that feeds none.
[[nodiscard]] int sink_in_flight(Turns own);

}  // namespace stagecraft::graphpipe
