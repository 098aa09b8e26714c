/// routes says how tensors in the host's memory go from rank to rank (`train --verbose`).
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/trainer/trainer.h"

namespace stagecraft::tools {

/// Returns a line per route, each with its pairs of ranks, of many the first ones.
[[nodiscard]] std::string routes_text(const std::vector<RankStatus>& ranks);

}  // namespace stagecraft::tools
