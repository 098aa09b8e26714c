/// The options that name one of our models and its sizes: the same of every command that takes
/// them.
#pragma once

#include <map>
#include <string>

#include "stagecraft/tools/train/model_sizes.h"
#include "stagecraft/tools/train/models.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

/// Adds `--model` and the sizes of all models, each once. `given`: those that were, by name.
/// Requires: both outlive the parsing.
void add_model(CLI::App& app, std::string& name_of, std::map<std::string, double>& given);

/// All sizes that the model of this name has. `command`: as in wrong_usage().
/// Errors: UsageArgument for an unknown name, for a size or data (`--text`, `--images`) that only
///         others have, and for sizes that make no model.
[[nodiscard]] ModelSizes sizes_of_named(const std::string& command,
                                        const CLI::App& app,
                                        const std::string& name,
                                        const std::map<std::string, double>& given);

}  // namespace stagecraft::tools
