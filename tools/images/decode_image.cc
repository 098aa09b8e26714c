#include "stagecraft/tools/images/decode_image.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kChannels = 3;
constexpr std::array<std::uint8_t, 8> kPngBegins{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::array<std::uint8_t, 3> kJpegBegins{0xFF, 0xD8, 0xFF};

[[noreturn]] void refuse(const std::string& path,
                         const std::string& found,
                         const std::string& remedy) {
  throw Error(Errc::UsageFile,
              fmt::format("--images expects PNG and JPEG files that can be decoded, found {} at "
                          "'{}'; {}",
                          found,
                          path,
                          remedy));
}

constexpr const char* kRepairOrRemove = "repair it, or remove it from the folder";

Bytes read_bytes(const std::string& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (!std::filesystem::is_regular_file(status)) {
    refuse(path,
           std::filesystem::exists(status) ? "something that is no regular file" : "no file",
           "check the path");
  }
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::int64_t>(file.tellg());
  if (!file || size < 0) {
    refuse(path, "a file that may not be read", "check its permissions");
  }
  if (size > kMostFileBytes) {
    refuse(path,
           fmt::format("{} (at most {})",
                       enough_bytes_text(static_cast<double>(size)),
                       bytes_text(static_cast<double>(kMostFileBytes))),
           "make it smaller");
  }
  Bytes bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), size);
  if (file.gcount() != size) {
    refuse(path, "a file that could not be read to its end", "run again");
  }
  return bytes;
}

/// Checks the size before any memory is taken for the pixels.
void check_size(const std::string& path, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1 || width > kMostPixels / height) {
    refuse(path,
           fmt::format("{} x {} pixels (at most {} in all)", width, height, kMostPixels),
           "make it smaller");
  }
}

Pixels pixels_of(std::int64_t width, std::int64_t height) {
  return {
      .height = height,
      .width = width,
      .rgb = Bytes(kChannels * static_cast<std::size_t>(width) * static_cast<std::size_t>(height))};
}

Pixels decode_png(const std::string& path, const Bytes& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> ends(&image, png_image_free);
  const auto damaged = [&] {
    refuse(path, fmt::format("a damaged PNG ({})", image.message), kRepairOrRemove);
  };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) {
    damaged();
  }
  check_size(path, image.width, image.height);
  image.format = PNG_FORMAT_RGB;
  Pixels pixels = pixels_of(image.width, image.height);
  const png_color white{255, 255, 255};
  // Row stride 0: rows without gaps. This format has no color map.
  if (png_image_finish_read(&image, &white, pixels.rgb.data(), 0, nullptr) == 0) {
    damaged();
  }
  return pixels;
}

struct EndJpeg {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};

/// Cameras and editors leave bytes between segments; the picture is whole then.
bool is_harmless(std::string_view warning) {
  return warning.find("extraneous bytes") != std::string_view::npos;
}

Pixels decode_jpeg(const std::string& path, const Bytes& bytes) {
  const std::unique_ptr<void, EndJpeg> decoder(tjInitDecompress());
  const auto damaged = [&] {
    refuse(
        path, fmt::format("a damaged JPEG ({})", tjGetErrorStr2(decoder.get())), kRepairOrRemove);
  };
  if (!decoder) {
    throw Error(Errc::DeviceOutOfMemory,
                "a JPEG decoder could not be made: memory does not suffice");
  }
  const auto size = static_cast<unsigned long>(bytes.size());
  int width = 0, height = 0, subsampling = 0, colors = 0;
  if (tjDecompressHeader3(
          decoder.get(), bytes.data(), size, &width, &height, &subsampling, &colors) != 0) {
    damaged();
  }
  if (width == 0 || height == 0) {
    refuse(path, "a damaged JPEG (truncated in its header)", kRepairOrRemove);
  }
  check_size(path, width, height);
  if (colors == TJCS_CMYK || colors == TJCS_YCCK) {
    refuse(path, "a JPEG in CMYK", "convert it to RGB");
  }
  Pixels pixels = pixels_of(width, height);
  // Limit the scans: a small progressive file could keep a decoder busy for hours.
  if (tjDecompress2(decoder.get(),
                    bytes.data(),
                    size,
                    pixels.rgb.data(),
                    width,
                    /*pitch=*/0,
                    height,
                    TJPF_RGB,
                    TJFLAG_LIMITSCANS | TJFLAG_ACCURATEDCT) != 0 &&
      (tjGetErrorCode(decoder.get()) != TJERR_WARNING ||
       !is_harmless(tjGetErrorStr2(decoder.get())))) {
    damaged();
  }
  return pixels;
}

bool begins_with(const Bytes& bytes, std::span<const std::uint8_t> begin) {
  return bytes.size() >= begin.size() && std::equal(begin.begin(), begin.end(), bytes.begin());
}

}  // namespace

Pixels decode_image(const std::string& path) {
  const Bytes bytes = read_bytes(path);
  if (begins_with(bytes, kPngBegins)) {
    return decode_png(path, bytes);
  }
  if (begins_with(bytes, kJpegBegins)) {
    return decode_jpeg(path, bytes);
  }
  refuse(path,
         bytes.empty() ? "an empty file" : "a file that is neither",
         "convert it, or remove it from the folder");
}

}  // namespace stagecraft::tools
