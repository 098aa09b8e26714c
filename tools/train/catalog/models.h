/// models is the registry of `--model`: the models that `stagecraft train` and `profile` know.
///
/// A new model is a source with its header in models/, and a line in the table of models.cc.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "stagecraft/tools/train/work/model_entry.h"

namespace stagecraft::tools {

/// Returns all models, in the order in which people should see them.
[[nodiscard]] std::span<const ModelEntry> models();

/// Returns the model. Errors: UsageArgument for an unknown name, suggesting the nearest.
[[nodiscard]] const ModelEntry& find_model(std::string_view name);

/// Returns "clip and unet": the models for which `wanted` is true.
[[nodiscard]] std::string names_of_models(const std::function<bool(const ModelEntry&)>& wanted,
                                          std::string_view last_after = "and");

}  // namespace stagecraft::tools
