/// DoctorRequest holds the options of `stagecraft doctor`.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace stagecraft::tools {

struct DoctorRequest {
  std::optional<std::string> hosts;  ///< a file
  std::string ssh;                   ///< program that reaches the hosts, and its options
  std::string interface;
  std::optional<std::string> credentials;  ///< a folder
  std::optional<std::string> run;          ///< a folder of train --run-dir: judge its run instead
  bool json = false;
  bool answer = false;  ///< run as the helper that another host's doctor has started
};

using DoctorHelp = std::string;

/// Reads the options. Errors: UsageArgument for options that make no sense.
[[nodiscard]] std::variant<DoctorRequest, DoctorHelp> parse_doctor_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
