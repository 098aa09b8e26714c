/// plot_of draws a sweep as an SVG picture: predicted and measured time of a step by the place of
/// the split, the measured one with the band between its quartiles. The picture follows the
/// reader's light or dark mode and is self-contained: it has no script, font or link. Pure.
#pragma once

#include <string>

#include "stagecraft/bench/plans/plans_sweep.h"

namespace stagecraft::bench {

/// Returns the picture. `below_title`: the place and the way of the measurement. Requires: the
/// sweep has a point.
[[nodiscard]] std::string plot_of(const Sweep& sweep, const std::string& below_title);

}  // namespace stagecraft::bench
