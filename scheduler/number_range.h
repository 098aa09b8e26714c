/// Whole numbers by their ranges, so that many of them are few: stages, microbatches. Values.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

namespace stagecraft {

/// `first` to `last`, both included.
struct NumberRange {
  int first = 0;
  int last = 0;

  friend constexpr auto operator<=>(const NumberRange&, const NumberRange&) = default;
};

/// Requires: ascending, each number once.
[[nodiscard]] std::vector<NumberRange> ranges_of(std::span<const int> numbers);

/// What of [0, end) is not among `numbers`. Requires: ascending, within [0, end).
[[nodiscard]] std::vector<NumberRange> ranges_without(std::span<const int> numbers, int end);

/// Returns "0 to 3, 5"; of very many ranges the first and how many numbers there are in all.
[[nodiscard]] std::string to_string(const std::vector<NumberRange>& ranges);

/// Returns "stage 2" or "stages 0 to 3, 5". Requires: not empty.
[[nodiscard]] std::string counted(const std::string& noun, const std::vector<NumberRange>& ranges);

}  // namespace stagecraft
