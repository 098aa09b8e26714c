#include "stagecraft/base/byte_count.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr double kKibi = 1024;

/// `rounded`: rounds a number of tenths.
template <class Rounded>
std::string text_of(double bytes, Rounded rounded) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const auto tenths = [&] { return rounded(bytes * 10) / 10; };
  // Compares what would be written, so that nothing is 1024.0 of a unit.
  if (std::abs(tenths()) < kKibi) {
    return fmt::format("{:.6g} B", bytes);
  }
  std::size_t unit = 0;
  for (bytes /= kKibi; std::abs(tenths()) >= kKibi && unit + 1 < std::size(kUnits); ++unit) {
    bytes /= kKibi;
  }
  return fmt::format("{:.1f} {}", tenths(), kUnits[unit]);
}

}  // namespace

std::string bytes_text(double bytes) {
  return text_of(bytes, [](double tenths) { return std::round(tenths); });
}

std::string enough_bytes_text(double bytes) {
  return text_of(std::ceil(bytes), [](double tenths) { return std::ceil(tenths); });
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr double kMost = kKibi * kKibi * kKibi * kKibi * kKibi;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.size() > 1 && unit.front() == ' ') {
    unit.remove_prefix(1);
  }
  double scale = 1;
  if (const auto power = kUnits.find(unit.substr(0, 1)); !unit.empty() && power < kUnits.size()) {
    scale = std::pow(kKibi, static_cast<double>(power + 1));
    unit.remove_prefix(1);
  }
  const bool rest_is_unit = unit.empty() || unit == "B" || (scale > 1 && unit == "iB");
  const bool is_whole = scale > 1 || number == std::trunc(number);
  const double bytes = number * scale;
  if (error != std::errc() || !rest_is_unit || !is_whole || !(bytes >= 1 && bytes <= kMost)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace stagecraft
