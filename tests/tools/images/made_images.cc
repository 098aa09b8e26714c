#include "stagecraft/tests/tools/images/made_images.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include <png.h>
#include <turbojpeg.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

std::vector<std::uint8_t> filled(int width, int height, Rgba color, int channels) {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < width * height; ++i) {
    bytes.insert(bytes.end(), color.begin(), color.begin() + channels);
  }
  return bytes;
}

void append_big_endian(std::string& bytes, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(number >> shift & 0xFFU);
  }
}

}  // namespace

std::string made_png(int width, int height, Rgba color, bool is_gray) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = is_gray ? PNG_FORMAT_GA : PNG_FORMAT_RGBA;
  if (is_gray) {
    color[1] = color[3];
  }
  const auto pixels = filled(width, height, color, is_gray ? 2 : 4);
  png_alloc_size_t size = 0;
  REQUIRE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr) != 0);
  std::string bytes(size, '\0');
  REQUIRE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr) !=
          0);
  bytes.resize(size);
  return bytes;
}

std::string made_jpeg(int width, int height, Rgba color, JpegColors colors) {
  const bool has_four = colors == JpegColors::Cmyk;
  const auto pixels = filled(width, height, color, has_four ? 4 : 3);
  void* encoder = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  const int failed = tjCompress2(encoder,
                                 pixels.data(),
                                 width,
                                 0,
                                 height,
                                 has_four ? TJPF_CMYK : TJPF_RGB,
                                 &out,
                                 &size,
                                 colors == JpegColors::Gray ? TJSAMP_GRAY : TJSAMP_444,
                                 95,
                                 0);
  std::string bytes(reinterpret_cast<const char*>(out), size);
  tjFree(out);
  tjDestroy(encoder);
  REQUIRE(failed == 0);
  return bytes;
}

std::string huge_png(std::uint32_t width, std::uint32_t height) {
  std::string header = "IHDR";
  append_big_endian(header, width);
  append_big_endian(header, height);
  header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB, not interlaced
  std::string bytes = "\x89PNG\r\n\x1A\n";
  append_big_endian(bytes, 13);
  bytes += header;
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : header) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    }
  }
  append_big_endian(bytes, ~crc);
  append_big_endian(bytes, 0);  // an empty IDAT, cut short
  return bytes + "IDAT";
}

void write_below(const std::string& folder, const std::string& path, const std::string& content) {
  const std::filesystem::path at = std::filesystem::path(folder) / path;
  std::filesystem::create_directories(at.parent_path());
  std::ofstream(at, std::ios::binary) << content;
}

}  // namespace stagecraft::tests
