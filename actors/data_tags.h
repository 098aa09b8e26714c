/// The tags under which tensors travel beside the plan: results and state, between a rank and the
/// driver.
///
/// DT-1: they belong to an epoch that never ends, so that an abort of one step does not drop the
///       losses of another.
/// DT-2: `request` comes from the ledger, like submissions, and is never used twice.
/// DT-3: edges of plans are counted from 0 and never reach kResultEdge.
#pragma once

#include <cstddef>
#include <limits>

#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

inline constexpr EdgeId kResultEdge{std::numeric_limits<std::int32_t>::max() - 1};
inline constexpr EdgeId kStateEdge{std::numeric_limits<std::int32_t>::max()};

/// The tag of the `index`-th tensor of a request.
[[nodiscard]] constexpr Tag data_tag(EdgeId edge, Step request, std::size_t index) {
  return {.epoch = Epoch{std::numeric_limits<std::int64_t>::max()},
          .step = request,
          .edge = edge,
          .microbatch = Microbatch(index)};
}

}  // namespace stagecraft
