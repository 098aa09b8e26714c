#include "stagecraft/scheduler/render/terminal_colors.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/render/palette.h"

namespace stagecraft {
namespace {

/// The hues of palette.h, in its order.
constexpr std::array<int, kStageColors> kTerminalHues{
    39, 208, 42, 171, 220, 51, 211, 118, 105, 216, 37, 117};

/// Levels of each component of the color cube.
constexpr int kLevels = 6;
constexpr int kFull = kLevels - 1;

int cube_color(const std::array<int, 3>& rgb) {
  return 16 + kLevels * kLevels * rgb[0] + kLevels * rgb[1] + rgb[2];
}

/// Appends the hues (in degrees, with their colors) whose strongest component is full and whose
/// weakest is `least`, without red.
void add_ring(int least, std::vector<std::pair<double, int>>& ring) {
  constexpr double kEdge = 60;
  // From red to yellow green rises, from yellow to green red falls, and so on.
  constexpr std::array<int, 6> kChanging{1, 0, 2, 1, 0, 2};
  std::array<int, 3> rgb{kFull, least, least};
  for (std::size_t edge = 0; edge < kChanging.size(); ++edge) {
    int& part = rgb[static_cast<std::size_t>(kChanging[edge])];
    const int step = edge % 2 == 0 ? 1 : -1;
    for (int i = 0; i < kFull - least; ++i) {
      if (edge > 0 || i > 0) {
        ring.emplace_back(
            kEdge * (static_cast<double>(edge) + i / static_cast<double>(kFull - least)),
            cube_color(rgb));
      }
      part += step;
    }
  }
}

const std::vector<std::pair<double, int>>& ramp() {
  static const std::vector<std::pair<double, int>> hues = [] {
    constexpr int kStrong = 1;
    constexpr int kPale = 3;
    std::vector<std::pair<double, int>> all;
    add_ring(kStrong, all);
    add_ring(kPale, all);
    std::ranges::sort(all);
    return all;
  }();
  return hues;
}

}  // namespace

int terminal_color(int stage, int stages) {
  const int from_zero = std::max(stage, 0);
  if (stages <= kStageColors) {
    return kTerminalHues[static_cast<std::size_t>(from_zero % kStageColors)];
  }
  const auto place = static_cast<std::int64_t>(from_zero % stages) * kTerminalRamp / stages;
  return ramp()[static_cast<std::size_t>(place)].second;
}

}  // namespace stagecraft
