/// keep_worker keeps a worker at the place of a process of a step: nothing else starts a process of
/// a step again.
///
///     await the driver --> start a worker --> it ends, or its program calls for another (STP-4)
///           ^                                   |
///           +------- the program calls ---------+------- the program ends ----> its status
///
/// KW-1: a worker starts only when the program has called for it: neither at the program's end nor
///       if the program does without one.
/// KW-2: a worker that the program does without is killed before the next one starts: it may stand
///       still.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/launch/step_folder.h"

namespace stagecraft::tools {

/// Runs workers until the program has ended, or has called for none within `patience` of the end of
/// the last one. `arguments`: those of `stagecraft worker`, for a driver. Returns the status of the
/// last worker; Good if there was none.
/// Requires: signals are blocked (leave_signals()).
/// Errors: ClusterTimeout, as StepGuest::await_driver; DeviceOutOfMemory if no process can be made.
[[nodiscard]] ExitCode keep_worker(
    StepGuest& guest,
    std::chrono::seconds patience,
    const std::function<std::vector<std::string>(const std::string& driver)>& arguments);

}  // namespace stagecraft::tools
