/// ImageSet: images of one size in memory, each with a class or a caption: of a folder, or drawn.
///
/// Made once, never changed: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/tools/images/decode_image.h"

namespace stagecraft::tools {

struct ImageSet {
  at::Tensor pixels;                 ///< [images, 3, side, side] of uint8
  std::vector<std::string> classes;  ///< in ascending order; empty where none are asked for
  std::vector<std::int64_t> labels;  ///< of each image, into `classes`
  std::vector<std::vector<std::string>> captions;  ///< of each image, at least one
};

/// The largest square in the middle, resized: bilinear, with antialiasing. Shape: [3, side, side].
[[nodiscard]] at::Tensor square_of(const Pixels& image, std::int64_t side);

/// Images as models take them: in [-1, 1]. Shape: as `index`, then [3, side, side], of float.
[[nodiscard]] at::Tensor as_input(const at::Tensor& pixels, const at::Tensor& index);

/// All images of a folder (image_folder.h). `most`: bytes that they may take.
/// Errors: those of images_in and decode_image; DeviceOutOfMemory.
[[nodiscard]] ImageSet read_images(const std::string& folder, std::int64_t side, double most);

/// The same, with their classes.
/// Errors: UsageFile for images outside of sub-folders, and for fewer than two classes.
[[nodiscard]] ImageSet read_classes(const std::string& folder, std::int64_t side, double most);

/// The images that its captions name. Errors: those of captions_in and decode_image;
/// DeviceOutOfMemory.
[[nodiscard]] ImageSet read_captions(const std::string& folder, std::int64_t side, double most);

/// A small set for runs without a folder: shapes of several colours and sizes, with their shapes as
/// classes and captions such as "a small red circle". The same for the same seed and side.
[[nodiscard]] ImageSet drawn_images(std::uint64_t seed, std::int64_t side);

}  // namespace stagecraft::tools
