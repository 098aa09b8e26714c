/// In which order a schedule adds up the gradients of a stage.
///
/// Sums in floating point depend on their order. A schedule that adds every stage's microbatches in
/// ascending order, on one copy of the stage, gives the bits of one process that takes the
/// microbatches one after the other. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

/// Returns why the sums differ from those of one process, for people; nothing where they do not.
[[nodiscard]] std::optional<std::string> reordered_accumulation(const Schedule& schedule);

}  // namespace stagecraft
