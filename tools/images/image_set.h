/// ImageSet holds images of one size in memory, each with a class or a caption: from a folder, or
/// drawn.
///
/// It is made once and never changed: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/tools/images/decode_image.h"

namespace stagecraft::tools {

struct ImageSet {
  at::Tensor pixels;                               ///< [images, 3, side, side] of uint8
  std::vector<std::string> classes;                ///< ascending; empty if none are requested
  std::vector<std::int64_t> labels;                ///< per image, an index into `classes`
  std::vector<std::vector<std::string>> captions;  ///< per image, at least one
};

/// Returns the largest centered square, resized bilinearly with antialiasing. Shape: [3, side,
/// side].
[[nodiscard]] at::Tensor square_of(const Pixels& image, std::int64_t side);

/// Returns images in the form that models take: in [-1, 1]. Shape: as `index`, then [3, side,
/// side], of float.
[[nodiscard]] at::Tensor as_input(const at::Tensor& pixels, const at::Tensor& index);

/// Reads all images of a folder (image_folder.h). `most`: bytes that they may take.
/// Errors: those of images_in and decode_image; DeviceOutOfMemory.
[[nodiscard]] ImageSet read_images(const std::string& folder, std::int64_t side, double most);

/// Reads the images with their classes.
/// Errors: also UsageFile for images outside of sub-folders, and for fewer than two classes.
[[nodiscard]] ImageSet read_classes(const std::string& folder, std::int64_t side, double most);

/// Reads the images that the captions name. Errors: those of captions_in and decode_image;
/// DeviceOutOfMemory.
[[nodiscard]] ImageSet read_captions(const std::string& folder, std::int64_t side, double most);

/// Makes a small set for runs without a folder: shapes of several colors and sizes, with their
/// shapes as classes and captions like "a small red circle". Equal seeds and sides give equal sets.
[[nodiscard]] ImageSet drawn_images(std::uint64_t seed, std::int64_t side);

}  // namespace stagecraft::tools
