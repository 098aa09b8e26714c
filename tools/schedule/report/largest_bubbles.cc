#include "stagecraft/tools/schedule/report/largest_bubbles.h"

#include <algorithm>

namespace stagecraft::tools {

std::vector<Bubble> largest_bubbles(const Timeline& timeline) {
  constexpr std::size_t kMost = 5;
  std::vector<Bubble> bubbles = list_bubbles(timeline);
  const std::size_t kept = std::min(bubbles.size(), kMost);
  std::partial_sort(bubbles.begin(),
                    bubbles.begin() + static_cast<std::ptrdiff_t>(kept),
                    bubbles.end(),
                    [](const Bubble& a, const Bubble& b) {
                      return a.length() != b.length() ? a.length() > b.length()
                             : a.row != b.row         ? a.row < b.row
                                                      : a.start < b.start;
                    });
  bubbles.erase(bubbles.begin() + static_cast<std::ptrdiff_t>(kept), bubbles.end());
  return bubbles;
}

}  // namespace stagecraft::tools
