#include "stagecraft/scheduler/model/number_range.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"

namespace stagecraft {

std::vector<NumberRange> ranges_of(std::span<const int> numbers) {
  std::vector<NumberRange> ranges;
  for (const int n : numbers) {
    if (!ranges.empty() && ranges.back().last + 1 == n) {
      ranges.back().last = n;
    } else {
      ranges.push_back({n, n});
    }
  }
  return ranges;
}

std::vector<NumberRange> ranges_without(std::span<const int> numbers, int end) {
  std::vector<NumberRange> ranges;
  int next = 0;
  for (const int n : numbers) {
    if (n > next) {
      ranges.push_back({next, n - 1});
    }
    next = std::max(next, n + 1);
  }
  if (next < end) {
    ranges.push_back({next, end - 1});
  }
  return ranges;
}

std::string to_string(const std::vector<NumberRange>& ranges) {
  constexpr std::size_t kTold = 8;
  std::string text;
  std::int64_t numbers = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto [first, last] = ranges[i];
    numbers += std::int64_t{last} - first + 1;
    if (i < kTold) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
      text += first == last ? "" : fmt::format("{}{}", last == first + 1 ? ", " : " to ", last);
    }
  }
  return ranges.size() > kTold ? fmt::format("{}, ... ({} in all)", text, numbers) : text;
}

std::string counted(const std::string& noun, const std::vector<NumberRange>& ranges) {
  const bool one = ranges.size() == 1 && ranges.front().first == ranges.front().last;
  return fmt::format("{} {}", one ? noun : plural_of(noun), to_string(ranges));
}

}  // namespace stagecraft
