/// median and quartiles summarize repeated measurements and their spread. The functions are pure;
/// any thread may call them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace stagecraft {

/// Returns the sample at that share of the sorted samples: 0.5 is the median, 0.25 the first
/// quartile.
/// Requires: samples.
[[nodiscard]] inline double quantile(std::vector<double> samples, double share) {
  const auto last = static_cast<double>(samples.size() - 1);
  const auto place = samples.begin() + static_cast<std::ptrdiff_t>(share * last + 0.5);
  std::nth_element(samples.begin(), place, samples.end());
  return *place;
}

[[nodiscard]] inline double median(std::vector<double> samples) {
  return quantile(std::move(samples), 0.5);
}

struct Quartiles {
  double first = 0;
  double median = 0;
  double third = 0;
};

/// Requires: samples.
[[nodiscard]] inline Quartiles quartiles_of(const std::vector<double>& samples) {
  return {quantile(samples, 0.25), median(samples), quantile(samples, 0.75)};
}

/// Returns the interquartile range over the median. Requires: samples, the median not 0.
[[nodiscard]] inline double noise_of(const std::vector<double>& samples) {
  const Quartiles quartiles = quartiles_of(samples);
  return (quartiles.third - quartiles.first) / quartiles.median;
}

}  // namespace stagecraft
