/// dispatch_tags defines the tags by which the driver releases the tasks of a step, and by which
/// ranks say that they have run (Dispatch::PerTask, Dispatch::Decided). The epoch of the step ends
/// all these waits.
#pragma once

#include <cstddef>
#include <limits>

#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

// Those of data_tags.h come before them, and edges of plans never reach them.
inline constexpr EdgeId kReleaseEdge{std::numeric_limits<std::int32_t>::max() - 16};
inline constexpr EdgeId kDoneEdge{kReleaseEdge.value - 1};

/// Returns the tag that releases the instruction at `position` of a rank's list, or, for an order
/// that is decided while the step runs, the rank's next task of this number. `step`: the tag of the
/// step. The tensor is bytes: none, or the text of the reason why the step ends here. For a next
/// task it is a number: the position of its Run, or -1 if there is none.
[[nodiscard]] constexpr Tag release_tag(Tag step, std::size_t position) {
  step.edge = kReleaseEdge;
  step.microbatch = Microbatch(position);
  return step;
}

/// Returns the tag by which the rank says that it has run, with what it made
/// (dispatched_values.h).
[[nodiscard]] constexpr Tag done_tag(Tag step, std::size_t position) {
  step.edge = kDoneEdge;
  step.microbatch = Microbatch(position);
  return step;
}

}  // namespace stagecraft
