/// Images for tests, written by the libraries that read them: nothing binary is kept.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace stagecraft::tests {

using Rgba = std::array<std::uint8_t, 4>;

/// A PNG of one colour; where `is_grey`, of its first channel and alpha.
[[nodiscard]] std::string made_png(int width, int height, Rgba colour, bool is_grey = false);

enum class JpegColours { Rgb, Grey, Cmyk };

/// A JPEG of one colour.
[[nodiscard]] std::string made_jpeg(int width,
                                    int height,
                                    Rgba colour,
                                    JpegColours colours = JpegColours::Rgb);

/// The beginning of a PNG that says it has so many pixels, and has none.
[[nodiscard]] std::string huge_png(std::uint32_t width, std::uint32_t height);

/// Writes `content` to `path` below `folder`, with the folders between.
void write_below(const std::string& folder, const std::string& path, const std::string& content);

}  // namespace stagecraft::tests
