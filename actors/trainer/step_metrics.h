/// step_metrics converts the result of a step to the numbers of a MetricsWriter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/base/files/metrics_writer.h"

namespace stagecraft {

/// Returns loss, seconds, gradient_norm, learning_rate, bubble (a share), and peak_bytes (of the
/// rank that held the most bytes).
[[nodiscard]] inline Metrics metrics_of(const StepResult& step) {
  std::int64_t peak = 0;
  for (const RankTimes& rank : step.ranks) {
    peak = std::max<std::int64_t>(peak, rank.peak_bytes);
  }
  return {{"loss", step.mean_loss},
          {"seconds", step.seconds},
          {"gradient_norm", step.gradient_norm},
          {"learning_rate", step.learning_rate},
          {"bubble", step.bubble},
          {"peak_bytes", static_cast<double>(peak)}};
}

/// Returns what a model counts (count.h): count.NAME for a single number, count.NAME.0 and so on
/// for several.
[[nodiscard]] inline Metrics metrics_of(const Counts& counts) {
  Metrics metrics;
  for (const auto& [name, numbers] : counts) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      metrics.emplace_back("count." + name + (numbers.size() == 1 ? "" : '.' + std::to_string(i)),
                           numbers[i]);
    }
  }
  return metrics;
}

}  // namespace stagecraft
