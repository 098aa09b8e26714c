/// launch_crew starts the actors of a trainer, with all that they need to know.
///
/// The constructor of a Trainer calls it.
#pragma once

#include <chrono>
#include <memory>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/trainer/execution.h"

namespace stagecraft {

/// Returns the longest wait for a value of a step: until all steps in progress have ended.
[[nodiscard]] std::chrono::milliseconds longest_wait_for_values(const TrainerOptions& options);

/// Launches the crew. Logs what a user should know of buffers and threads.
/// Requires: the plan is in the form for the dispatch of the options.
/// Errors: those of Crew.
[[nodiscard]] std::unique_ptr<Crew> launch_crew(const Cluster& cluster,
                                                const std::shared_ptr<StepLedger>& ledger,
                                                const Execution& execution,
                                                const Optimizer& optimizer,
                                                const TrainerOptions& options);

}  // namespace stagecraft
