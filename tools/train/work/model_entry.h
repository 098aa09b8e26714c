/// ModelEntry is one model of `--model`: its name, its data, its sizes, and the way to open its
/// work.
///
/// Each model makes its own in its file, and the registry (catalog/models.h) lists all of them. The
/// command line, its messages and `--help` are made from the entries.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/tools/train/work/model_sizes.h"
#include "stagecraft/tools/train/work/work.h"
#include "stagecraft/tools/train/work/work_request.h"

namespace stagecraft::tools {

/// ModelSize is one option of a model: a whole number from 1 on, or a real one.
struct ModelSize {
  enum class Kind { Whole, Positive, FromZeroToOne };
  std::string_view name;  ///< without its dashes
  std::string_view meaning;
  std::optional<double> fallback;  ///< none: the model's own, which `meaning` describes
  Kind kind = Kind::Whole;
};

struct ModelEntry {
  std::string_view name;
  std::string_view summary;
  std::string_view data;  ///< the option that names its data: "text" or "images"
  std::vector<ModelSize> sizes;
  /// Returns the reason why the sizes make no model: "--heads expects ..."; empty if they do.
  std::string (*wrong)(const ModelSizes& sizes) = nullptr;
  /// Opens the work. `most`: bytes that the data may take.
  /// Errors: UsageFile for data that cannot be read; DeviceOutOfMemory for data that is too large.
  std::unique_ptr<Work> (*open)(const WorkRequest& request, double most) = nullptr;
  bool may_branch = false;  ///< its stages may be a graph other than a chain
  /// True if its loss is not a mean over samples: with other microbatches it trains on something
  /// else.
  bool mixes_samples = false;
};

/// Opens a work of this kind, for ModelEntry::open.
template <class Kind>
[[nodiscard]] std::unique_ptr<Work> open_as(const WorkRequest& request, double most) {
  return std::make_unique<Kind>(request, most);
}

// Sizes of equal meaning have equal words, because --help shows an option once.
inline constexpr const char* kLayersMeaning = "layers [4, or one per stage]";
inline constexpr const char* kDimMeaning = "model width";
inline constexpr const char* kHeadsMeaning = "attention heads; must divide --dim";
inline constexpr const char* kFfnMeaning = "width of the feed-forward layers";
inline constexpr const char* kImageMeaning = "height and width of an image, in pixels";
inline constexpr const char* kPatchMeaning =
    "height and width of a patch, in pixels; must divide --image";

/// Implements ModelEntry::wrong: heads must divide the width, into even widths if a rotary
/// embedding turns pairs; patches must divide the image.
[[nodiscard]] std::string wrong_heads(const ModelSizes& sizes);
[[nodiscard]] std::string wrong_heads_of_rotated_pairs(const ModelSizes& sizes);
[[nodiscard]] std::string wrong_patches_or_heads(const ModelSizes& sizes);

}  // namespace stagecraft::tools
