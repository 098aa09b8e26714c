/// The lines of the registry (models.h), each in the file of its model, and their shared parts.
#pragma once

#include "stagecraft/tools/train/catalog/models.h"

namespace stagecraft::tools {

[[nodiscard]] ModelEntry llama_entry();
[[nodiscard]] ModelEntry moe_entry();
[[nodiscard]] ModelEntry vit_entry();
[[nodiscard]] ModelEntry unet_entry();
[[nodiscard]] ModelEntry clip_entry();

// Equal meanings have equal words: --help shows an option once.
inline constexpr const char* kLayersMeaning = "layers, 4 or one per stage unless given";
inline constexpr const char* kDimMeaning = "width";
inline constexpr const char* kHeadsMeaning = "attention heads; divides --dim";
inline constexpr const char* kFfnMeaning = "width of the feed-forward";
inline constexpr const char* kImageMeaning = "pixels of an image's side";
inline constexpr const char* kPatchMeaning = "pixels of a patch's side; divides --image";

/// For ModelEntry::wrong: heads must divide the width, into even widths if a rotary embedding turns
/// pairs; patches must divide the image.
[[nodiscard]] std::string wrong_heads(const ModelSizes& sizes);
[[nodiscard]] std::string wrong_heads_of_rotated_pairs(const ModelSizes& sizes);
[[nodiscard]] std::string wrong_patches_or_heads(const ModelSizes& sizes);

}  // namespace stagecraft::tools
