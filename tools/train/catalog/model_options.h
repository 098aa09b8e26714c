/// model_options adds the options that name a model and its data; all commands that take a model
/// share them.
#pragma once

#include <initializer_list>
#include <string>

#include "stagecraft/tools/train/work/work_request.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

/// Adds `--model` with the sizes of all models, each once, `--model-file`, and the data: `--text`,
/// `--images`, `--data` with `--held-out`. Requires: both outlive the parsing.
void add_model_options(CLI::App& app, ModelChoice& model, DataPlaces& data);

/// Judges these options together after the parsing, and sets the sizes that were not given.
/// `command`: as in wrong_usage(). `named_only`: further options without effect on a model from a
/// file.
/// Errors: UsageArgument for an unknown name, for a size or data that only other models have, for
///         sizes that make no model, and for a model from a file without its data.
void settle_model(const std::string& command,
                  const CLI::App& app,
                  ModelChoice& model,
                  const DataPlaces& data,
                  std::initializer_list<const char*> named_only = {});

}  // namespace stagecraft::tools
