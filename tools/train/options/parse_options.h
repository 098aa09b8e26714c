/// parse_train_options reads the command line of `stagecraft train`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// HelpText is the answer to `--help`.
struct HelpText {
  std::string text;
};

/// Returns the options, or the help if it was requested.
/// Errors: UsageArgument, naming the option, the expected value and the found one.
[[nodiscard]] std::variant<TrainOptions, HelpText> parse_train_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
