#include "stagecraft/compiler/fuse/fuse_report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace stagecraft {
namespace {

/// What differs, in the order of its first, with how often it is there.
template <class T>
std::vector<std::pair<T, int>> counted(const std::vector<T>& all) {
  std::vector<std::pair<T, int>> kinds;
  for (const T& one : all) {
    const auto known = std::ranges::find(kinds, one, &std::pair<T, int>::first);
    if (known == kinds.end()) {
      kinds.emplace_back(one, 1);
    } else {
      ++known->second;
    }
  }
  return kinds;
}

std::string times(int count) {
  return count == 1 ? "" : fmt::format("{} x ", count);
}

std::string told(const PassCounts& counts) {
  return fmt::format("{} operators in {} pass{}{}",
                     counts.fused,
                     counts.passes,
                     counts.passes == 1 ? "" : "es",
                     counts.alone == 0 ? "" : fmt::format(" and {} alone", counts.alone));
}

}  // namespace

std::string to_string(const FuseReport& report) {
  std::string text;
  for (const auto& [region, count] : counted(report.regions)) {
    text += region.fault.empty()
                ? fmt::format("  fused: {}[{}], forward {}{}\n",
                              times(count),
                              region.operators,
                              told(region.forward),
                              region.backward == PassCounts{}
                                  ? ""
                                  : fmt::format(", backward {}", told(region.backward)))
                : fmt::format(
                      "  not fused: {}[{}]: {}\n", times(count), region.operators, region.fault);
  }
  for (const auto& [left, count] : counted(report.left)) {
    text += fmt::format("  not fused: {}{}: {}\n", times(count), left.name, left.why);
  }
  return text;
}

}  // namespace stagecraft
