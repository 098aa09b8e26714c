/// How long tasks and transfers are to take, as a command is told it.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "stagecraft/scheduler/cost_model.h"
#include "stagecraft/tools/schedule/console.h"

namespace stagecraft::tools {

struct TimeOptions {
  Durations durations;
  double latency = 0;
};

/// Adds --f, --b, --i, --w and --latency. `options` must outlive the parse.
void add_time_options(CLI::App& app, TimeOptions& options);

/// Returns the costs that the options state.
[[nodiscard]] CostModel cost_model(const TimeOptions& options);

}  // namespace stagecraft::tools
