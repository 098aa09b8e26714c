/// show_model is `stagecraft dag show` with a model: it traces the model and cuts it into stages as
/// `train` does, so that the nodes know their operators.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Shows the DAG of a strategy or a schedule. Without --model and --model-file it does what
/// show_dag() does.
/// Errors: those of show_dag(), of the model's options, and of compiling it; UsageArgument for a
/// model of another number of stages.
[[nodiscard]] ExitCode show_dag_of_model(const std::vector<std::string>& words, Console& console);

/// Runs `stagecraft dag` with this `show`.
[[nodiscard]] ExitCode dag_of_models(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
