/// LaunchRequest holds the options of `stagecraft launch`.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace stagecraft::tools {

struct LaunchRequest {
  std::optional<std::string> hosts;  ///< a file
  std::optional<int> per_host;
  std::string ssh;  ///< program that reaches the hosts, and its options
  std::string interface;
  std::string log_dir;
  std::string meeting_place;  ///< of a step of Slurm
  int join_seconds = 60;
  int silence_seconds = 5;
  std::vector<std::string> program;  ///< and its arguments; at least one word
};

using LaunchHelp = std::string;

/// Reads the options. Errors: UsageArgument for options that make no sense.
[[nodiscard]] std::variant<LaunchRequest, LaunchHelp> parse_launch_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
