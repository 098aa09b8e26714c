/// PlanOptions holds the options of `stagecraft plan`, and makes the request from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"
#include "stagecraft/tools/common/console.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

struct PlanOptions {
  std::string costs;
  int devices = 0;
  std::optional<int> processors;
  std::optional<std::int64_t> memory;  ///< bytes of every device
  std::string planner = "auto";
  std::optional<int> batch;  ///< samples; none: 8 of the measured microbatches
  std::vector<int> microbatch_sizes;
  bool stage_sizes = false;
  std::optional<std::string> schedule;  ///< a builder's name or a file
  std::optional<std::string> barriers;  ///< "phases", or a file with event orders
  std::string channels = "free";
  std::vector<std::string> what_if;    ///< "link=0-1:10x", "memory=4G"
  std::vector<std::string> together;   ///< "3-9": operators to keep in one stage
  std::vector<std::string> on_device;  ///< "0:3-9": the same, and the device that runs it
  std::optional<int> max_stages;
  std::optional<double> time_limit;  ///< seconds
  int top = 5;
  bool why = false;
  bool json = false;
  std::optional<std::string> schedule_out, cut_out, html;
};

/// Adds all options. `options` must outlive the parse.
void add_plan_options(CLI::App& app, PlanOptions& options);

/// Returns the request, without the changes of --what-if.
/// Errors: UsageArgument for a word that is no number of bytes; those of reading costs, schedule
///         and barriers.
[[nodiscard]] PlanRequest plan_request(const PlanOptions& options, Console& console);

/// Returns the request with all changes of --what-if.
/// Errors: UsageArgument for a word that is no number of bytes, no link or no factor.
[[nodiscard]] PlanRequest with_changes(PlanRequest request, const PlanOptions& options);

}  // namespace stagecraft::tools
