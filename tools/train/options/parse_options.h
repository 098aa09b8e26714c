/// parse_train_options: reads the command line of `stagecraft train`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// The answer to `--help`.
struct HelpText {
  std::string text;
};

/// Returns the options, or the help if it was asked for.
/// Errors: UsageArgument, naming the option, what it expects and what was found.
[[nodiscard]] std::variant<TrainOptions, HelpText> parse_train_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
