/// gradient_flow finds which inputs of a stage owe a gradient, and which of its parameters train.
/// compile uses it, once.
///
/// Autograd answers both questions: a stage's backward begins at its loss and at those outputs
/// whose consumers send a gradient back, and ends at the leaves that its graph reaches.
#pragma once

#include <vector>

#include "stagecraft/compiler/stage/partition.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {

/// Fills in StageInput::owes_gradient, StageOutput::gradient_from and StageParameter::trained.
/// `runs`: the result of run_stages for the partition.
void find_gradient_flow(Partition& partition, const std::vector<StageRun>& runs);

}  // namespace stagecraft
