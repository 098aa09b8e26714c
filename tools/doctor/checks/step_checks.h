/// step_checks checks the step of a batch system in which the doctor runs: node, task, allocation,
/// and whether the processes of the step can meet as those of `stagecraft launch` do.
#pragma once

#include <chrono>
#include <vector>

#include "stagecraft/actors/launch/ways/batch_system.h"
#include "stagecraft/tools/doctor/checks/finding.h"

namespace stagecraft::tools {

/// Returns the findings. `patience`: longest wait for the other processes of the step; each runs
/// this check too.
[[nodiscard]] std::vector<Finding> check_step(const BatchStep& step, std::chrono::seconds patience);

}  // namespace stagecraft::tools
