/// The options that name one of our models and its sizes; all commands that take them share these.
#pragma once

#include <map>
#include <string>

#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/models/model_sizes.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

/// Adds `--model` and the sizes of all models, each once. `given`: the sizes that were given, by
/// name.
/// Requires: both outlive the parsing.
void add_model(CLI::App& app, std::string& name_of, std::map<std::string, double>& given);

/// Returns all sizes of the model of this name. `command`: as in wrong_usage().
/// Errors: UsageArgument for an unknown name, for a size or data (`--text`, `--images`) that only
///         other models have, and for sizes that make no model.
[[nodiscard]] ModelSizes sizes_of_named(const std::string& command,
                                        const CLI::App& app,
                                        const std::string& name,
                                        const std::map<std::string, double>& given);

}  // namespace stagecraft::tools
