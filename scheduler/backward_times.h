/// backward_times: the times of a backward and of its halves, where only some of them are stated.
///
///     stated B             I and W divide B as before: half each where nothing else is known
///     stated B and I       W is the rest
///     stated I and W       B is the sum
///
/// Pure; any thread. Units: any one unit of time.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/scheduler/costs.h"

namespace stagecraft {

struct StatedBackward {
  std::optional<double> whole, input, weight;  ///< B, I, W
};

/// Writes what is stated into `times`, and what follows of it for the others. Returns what was
/// not stated and how it was made, "does not say I and W: each is half of B"; nothing where all or
/// none is stated.
/// `times`: as they were before. `known`: whether somebody stated those; halves may then be more
/// than the whole together, and stay so in proportion.
/// Errors: UsageArgument for one half without the whole where no times are known, and for a half
///         that leaves less than nothing for the other.
[[nodiscard]] std::optional<std::string> set_backward(Durations& times,
                                                      const StatedBackward& stated,
                                                      bool known);

}  // namespace stagecraft
