#include "stagecraft/tools/images/image_set.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/round.h>
#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/images/image_folder.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kImageChannels = 3;
constexpr float kMiddle = 127.5F;  // of a byte's range

/// Decodes all images, in the order of `files`.
at::Tensor stacked_pixels(const std::string& folder,
                          const std::vector<std::string>& files,
                          std::int64_t side,
                          double most) {
  const double bytes = static_cast<double>(files.size()) *
                       static_cast<double>(kImageChannels * side) * static_cast<double>(side);
  if (bytes > most) {
    throw Error(
        Errc::DeviceOutOfMemory,
        fmt::format("--images expects images that fit into memory, {} are left; the {} images of "
                    "'{}' take {} at {} x {}; give fewer, or a smaller --image",
                    bytes_text(most),
                    files.size(),
                    folder,
                    bytes_text(bytes),
                    side,
                    side));
  }
  at::Tensor pixels =
      at::empty({static_cast<std::int64_t>(files.size()), kImageChannels, side, side}, at::kByte);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Pixels image = decode_image((std::filesystem::path(folder) / files[i]).string());
    pixels[static_cast<std::int64_t>(i)].copy_(square_of(image, side));
  }
  return pixels;
}

std::vector<std::string> paths_of(const std::vector<ImageFile>& files) {
  std::vector<std::string> paths;
  for (const ImageFile& file : files) {
    paths.push_back(file.path);
  }
  return paths;
}

}  // namespace

at::Tensor square_of(const Pixels& image, std::int64_t side) {
  const std::int64_t edge = std::min(image.height, image.width);
  // The tensor only reads.
  auto* bytes = const_cast<std::uint8_t*>(image.rgb.data());
  const at::Tensor square =
      at::from_blob(bytes, {image.height, image.width, kImageChannels}, at::kByte)
          .narrow(0, (image.height - edge) / 2, edge)
          .narrow(1, (image.width - edge) / 2, edge)
          .permute({2, 0, 1})
          .contiguous();
  if (edge == side) {
    return square;
  }
  return at::_upsample_bilinear2d_aa(square.to(at::kFloat).unsqueeze(0),
                                     {side, side},
                                     /*align_corners=*/false)
      .squeeze(0)
      .round()
      .clamp(0, 255)
      .to(at::kByte);
}

at::Tensor as_input(const at::Tensor& pixels, const at::Tensor& index) {
  return at::index_select(pixels, 0, index).to(at::kFloat).div_(kMiddle).sub_(1.0F);
}

ImageSet read_images(const std::string& folder, std::int64_t side, double most) {
  return {.pixels = stacked_pixels(folder, paths_of(images_in(folder)), side, most)};
}

ImageSet read_classes(const std::string& folder, std::int64_t side, double most) {
  const std::vector<ImageFile> files = images_in(folder);
  ImageSet set;
  for (const ImageFile& file : files) {
    if (file.label.empty()) {
      throw Error(Errc::UsageFile,
                  fmt::format("--images expects a sub-folder of '{}' for each class, found '{}' "
                              "outside of them; move it into its class's",
                              folder,
                              file.path));
    }
    set.classes.push_back(file.label);
  }
  std::ranges::sort(set.classes);
  set.classes.erase(std::unique(set.classes.begin(), set.classes.end()), set.classes.end());
  if (set.classes.size() < 2) {
    throw Error(Errc::UsageFile,
                fmt::format("--images expects at least two classes, sub-folders of '{}' with "
                            "images, found only '{}'",
                            folder,
                            set.classes.front()));
  }
  for (const ImageFile& file : files) {
    const auto at = std::ranges::lower_bound(set.classes, file.label);
    set.labels.push_back(at - set.classes.begin());
  }
  set.pixels = stacked_pixels(folder, paths_of(files), side, most);
  return set;
}

ImageSet read_captions(const std::string& folder, std::int64_t side, double most) {
  ImageSet set;
  std::vector<std::string> files;
  std::map<std::string, std::size_t> index;
  for (Caption& caption : captions_in(folder)) {
    const auto [at, added] = index.emplace(caption.path, files.size());
    if (added) {
      files.push_back(caption.path);
      set.captions.emplace_back();
    }
    set.captions[at->second].push_back(std::move(caption.text));
  }
  set.pixels = stacked_pixels(folder, files, side, most);
  return set;
}

}  // namespace stagecraft::tools
