/// Chimera runs two 1F1B-like pipelines in opposite directions, whose bubbles fill each other.
///
///     0F0 3F0 3B0 0B0     replica 0 runs stages 0 and 1 downwards,
///     2F0 1F0 1B0 2B0     replica 1 stages 2 and 3 upwards
///
/// Microbatches come in units of D, half of them per direction; units follow each other directly.
/// Weights are held twice. Source: Li and Hoefler, "Chimera: Efficiently Training Large-Scale
/// Neural Networks with Bidirectional Pipelines", with one replica pair and direct concatenation.
#pragma once

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array, with its two chains as a header.
/// Errors: ScheduleParameter unless ranks are even and divide microbatches.
[[nodiscard]] Schedule chimera(int ranks, int microbatches);

}  // namespace stagecraft
