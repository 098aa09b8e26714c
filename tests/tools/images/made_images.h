/// Makes images for tests with the libraries that read them, so that no binary file is kept.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace stagecraft::tests {

using Rgba = std::array<std::uint8_t, 4>;

/// Returns a PNG of one color. If `is_gray`, it has the color's first channel and alpha.
[[nodiscard]] std::string made_png(int width, int height, Rgba color, bool is_gray = false);

enum class JpegColors { Rgb, Gray, Cmyk };

/// Returns a JPEG of one color.
[[nodiscard]] std::string made_jpeg(int width,
                                    int height,
                                    Rgba color,
                                    JpegColors colors = JpegColors::Rgb);

/// Returns the beginning of a PNG that claims this many pixels and has none.
[[nodiscard]] std::string huge_png(std::uint32_t width, std::uint32_t height);

/// Writes `content` to `path` below `folder`, and makes the folders between.
void write_below(const std::string& folder, const std::string& path, const std::string& content);

}  // namespace stagecraft::tests
