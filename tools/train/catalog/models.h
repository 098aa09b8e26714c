/// The registry: the models that `stagecraft train --model` knows, with the data that each reads
/// and its sizes. Options, messages and runs use it.
///
/// A new model is one file with its Work and one line in the table of models.cc.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/tools/train/models/model_sizes.h"

namespace stagecraft::tools {

class Work;
struct TrainOptions;

struct ModelEntry {
  std::string_view name;
  std::string_view summary;
  std::string_view data;  ///< the option that names its data: "text" or "images"
  std::vector<ModelSize> sizes;
  /// Returns why the sizes make no model: "--heads expects ..."; empty if they do.
  std::string (*wrong)(const ModelSizes& sizes) = nullptr;
  /// Errors: as open_work.
  std::unique_ptr<Work> (*open)(const TrainOptions& options, double most) = nullptr;
  bool may_branch = false;  ///< its stages may be a graph other than a chain
  /// Its loss is not a mean over samples: with other microbatches it trains on something else.
  bool mixes_samples = false;
};

/// Returns all models, in the order in which people should see them.
[[nodiscard]] std::span<const ModelEntry> models();

/// Errors: UsageArgument for an unknown name, suggesting the nearest.
[[nodiscard]] const ModelEntry& find_model(std::string_view name);

/// Returns "clip and unet": the models for which `wanted` is true.
[[nodiscard]] std::string names_of_models(const std::function<bool(const ModelEntry&)>& wanted);

}  // namespace stagecraft::tools
