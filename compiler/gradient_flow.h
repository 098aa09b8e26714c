/// gradient_flow: which inputs of a stage owe a gradient, and which of its parameters train. Used
/// by compile, once.
///
/// Both are asked of autograd: a stage's backward begins at its loss and at those outputs whose
/// consumers send a gradient back, and ends at the leaves that its graph reaches.
#pragma once

#include <vector>

#include "stagecraft/compiler/partition.h"
#include "stagecraft/compiler/probe.h"

namespace stagecraft {

/// Fills in StageInput::owes_gradient, StageOutput::gradient_from and StageParameter::trained.
/// `runs`: what run_stages returned for the partition.
void find_gradient_flow(Partition& partition, const std::vector<StageRun>& runs);

}  // namespace stagecraft
