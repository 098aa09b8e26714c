/// run_environment chooses the variables of the environment that the record of a run keeps. It lets
/// in by name those that change a run or say where it ran: any other may be a secret, and records
/// are shown and copied.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace stagecraft::tools {

/// Returns whether a variable of this name changes a run. A shell takes the name as it is.
[[nodiscard]] bool changes_run(std::string_view name);

/// Returns the variables of `environment` ("NAME=VALUE", null at the end) that change a run: where
/// ranks run, and the code, threads and devices with which they compute. The same command with
/// others is another run.
[[nodiscard]] nlohmann::ordered_json variables_of_run(const char* const* environment);

/// Returns those that name the job of a batch system, or the pod.
[[nodiscard]] nlohmann::ordered_json variables_of_job(const char* const* environment);

}  // namespace stagecraft::tools
