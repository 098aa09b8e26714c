/// backward_times computes the times of a backward (B) and of its halves (I, W) if only some are
/// stated.
///
///     stated B             I and W divide B as before; with no known times, each takes half
///     stated B and I       W is the rest
///     stated I and W       B is the sum
///
/// Pure; any thread. Units: any one unit of time.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft {

struct StatedBackward {
  std::optional<double> whole, input, weight;  ///< B, I, W
};

/// Writes the stated times into `times` and computes the others from them. Returns a note about the
/// times that were not stated and how they were computed ("does not say I and W: each is half of
/// B"); nothing if all or none are stated. `times`: the times before the call. `known`: whether
/// those were stated. Then the halves may together take more than the whole, and they keep that
/// proportion.
/// Errors: UsageArgument for one half without the whole if no times are known, and for a half that
/// leaves less than nothing for the other.
[[nodiscard]] std::optional<std::string> set_backward(Durations& times,
                                                      const StatedBackward& stated,
                                                      bool known);

}  // namespace stagecraft
