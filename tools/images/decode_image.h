/// decode_image: the pixels of a PNG or JPEG file, by libpng's simplified interface and that of
/// TurboJPEG.
///
/// Which of the two a file is, its first bytes say, not its name. Both interfaces end their own
/// jumps (setjmp) before they return, so none crosses objects of ours. Files are anybody's: sizes
/// are judged before memory is taken, and what is broken is refused rather than filled with grey.
/// Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::tools {

/// More than any camera takes; as RGB 192 MiB.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
/// Largest file of an image. Units: bytes.
inline constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 28;

struct Pixels {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> rgb;  ///< [height, width, 3]
};

/// Grey becomes RGB, what is transparent shows white, 16 bits become 8; EXIF is not read.
/// Errors: UsageFile, naming the file: one that cannot be read, is neither PNG nor JPEG, breaks off
///         or is damaged, has more than kMostPixels, or is a JPEG in CMYK.
[[nodiscard]] Pixels decode_image(const std::string& path);

}  // namespace stagecraft::tools
