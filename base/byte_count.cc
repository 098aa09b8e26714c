#include "stagecraft/base/byte_count.h"

#include <cstddef>
#include <iterator>

#include <fmt/format.h>

namespace stagecraft {

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    return fmt::format("{:.6g} B", bytes);
  }
  std::size_t unit = 0;
  for (bytes /= 1024; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) {
    bytes /= 1024;
  }
  return fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace stagecraft
