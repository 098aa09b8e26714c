/// step_tensors sends and receives the tensors of one step that belong to the driver itself: inputs
/// and labels, and the plan's results.
///
/// The driver calls it when it starts a step.
#pragma once

#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// Sends the inputs and labels that ranks do not read themselves. `step`: the tag of the step,
/// without edge and microbatch. Errors: the transport's.
void send_inputs(Transport& here, const Tag& step, const StepInput& input);

/// Posts the receives of the plan's results, and puts their futures into `input.results`. Does not
/// wait for them: ranks send them before their reports, and the trainer waits.
void expect_results(Transport& here, const Tag& step, const StepInput& input);

}  // namespace stagecraft
