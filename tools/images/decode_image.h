/// decode_image reads the pixels of a PNG or JPEG file, by libpng's simplified interface and by
/// TurboJPEG.
///
/// The first bytes of a file decide its type, not its name. Both interfaces end their own jumps
/// (setjmp) before they return, so no jump crosses our objects. Files may come from anywhere: the
/// size is judged before memory is taken, and a broken file is refused, not filled with gray. Any
/// thread may call it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::tools {

/// The most pixels of an image: more than the largest camera images; 192 MiB as RGB.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
/// The largest file of an image. Units: bytes.
inline constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 28;

struct Pixels {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> rgb;  ///< [height, width, 3]
};

/// Returns RGB. Converts gray, puts transparent pixels on white, and reduces 16 bits to 8. Does not
/// read EXIF.
/// Errors: UsageFile, naming the file, if it cannot be read, is neither PNG nor JPEG, is cut off or
///         damaged, has more than kMostPixels, or is a JPEG in CMYK.
[[nodiscard]] Pixels decode_image(const std::string& path);

}  // namespace stagecraft::tools
