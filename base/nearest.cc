#include "stagecraft/base/nearest.h"

#include <algorithm>
#include <numeric>

namespace stagecraft {
namespace {

/// Returns how many letters to insert, remove, replace or exchange with their neighbor make `b` of
/// `a` (optimal string alignment), computed one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j] + (a[i] == b[j] ? 0 : 1), row[j + 1] + 1, next[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
      }
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  const auto begun = std::find_if(known.begin(), known.end(), [&](const std::string& candidate) {
    return word.size() > 2 && candidate.starts_with(word);
  });
  if (begun != known.end()) {
    return *begun;
  }
  std::optional<std::string> best;
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t limit = std::max<std::size_t>(1, letters / 3);
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < limit || (distance == limit && !best)) {
      best = candidate;
      limit = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const auto guess = nearest(word, known);
  return guess ? "did you mean " + *guess + "? " : std::string();
}

}  // namespace stagecraft
