/// number_range stores whole numbers (stages, microbatches) as ranges, so that many numbers take
/// few entries. Values.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

namespace stagecraft {

/// NumberRange holds the numbers from `first` to `last`, both included.
struct NumberRange {
  int first = 0;
  int last = 0;

  friend constexpr auto operator<=>(const NumberRange&, const NumberRange&) = default;
};

/// Returns the numbers as ranges. Requires: ascending, each number once.
[[nodiscard]] std::vector<NumberRange> ranges_of(std::span<const int> numbers);

/// Returns the numbers of [0, end) that are not in `numbers`. Requires: ascending, within [0, end).
[[nodiscard]] std::vector<NumberRange> ranges_without(std::span<const int> numbers, int end);

/// Returns "0 to 3, 5"; for very many ranges the first ones and the total count of numbers.
[[nodiscard]] std::string to_string(const std::vector<NumberRange>& ranges);

/// Returns "stage 2" or "stages 0 to 3, 5". Requires: not empty.
[[nodiscard]] std::string counted(const std::string& noun, const std::vector<NumberRange>& ranges);

}  // namespace stagecraft
