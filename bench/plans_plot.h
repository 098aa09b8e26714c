/// Plot: a sweep as an SVG picture: predicted and measured time of a step by where the model is
/// split, the measured one with the band between its quartiles. Light and dark, as the reader's
/// screen is; self-contained: no script, no font, no link. Pure.
#pragma once

#include <string>

#include "stagecraft/bench/plans_sweep.h"

namespace stagecraft::bench {

/// `below_title`: where and how it was measured. Requires: a point.
[[nodiscard]] std::string plot_of(const Sweep& sweep, const std::string& below_title);

}  // namespace stagecraft::bench
