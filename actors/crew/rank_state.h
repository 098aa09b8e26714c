/// rank_state defines what is read from ranks' states and written to them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

/// StatePick names tensors of a rank's state.
struct StatePick {
  Rank rank;
  std::vector<std::int32_t> positions = {};  ///< in its listing; empty: all
};

/// Picks the whole state of each of these ranks.
[[nodiscard]] std::vector<StatePick> all_of(const std::vector<Rank>& ranks);

/// StateOfRank returns the state that a rank is to have, in the order of its listing.
using StateOfRank = std::function<std::vector<StateTensor>(Rank)>;

}  // namespace stagecraft
