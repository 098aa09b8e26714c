#include "stagecraft/actors/executor/step/step_parts.h"

#include "stagecraft/compiler/shapes/parts.h"

namespace stagecraft {

PartRuns runs_of(const Parts& parts, double scale) {
  PartRuns runs;
  if (parts.shapes.empty() && parts.weights.empty() && scale == 1.0) {
    return runs;
  }
  for (std::size_t m = 0; m < parts.inputs.size(); ++m) {
    const bool as_compiled = parts.shapes.empty() || parts.shapes[m] == nullptr;
    const PartRun part{.count = 1,
                       .shape = as_compiled ? 0 : parts.shapes[m]->number,
                       .weight = parts.weight(m) * scale};
    if (!runs.empty() && runs.back().shape == part.shape && runs.back().weight == part.weight) {
      ++runs.back().count;
    } else {
      runs.push_back(part);
    }
  }
  return runs;
}

double scale_of(const Parts& further, std::int64_t first_samples) {
  return further.first_samples == first_samples
             ? 1.0
             : static_cast<double>(further.first_samples) / static_cast<double>(first_samples);
}

void append(PartRuns& all, const PartRuns& batch, int microbatches) {
  if (batch.empty()) {
    all.push_back({.count = microbatches});
  }
  all.insert(all.end(), batch.begin(), batch.end());
}

PartRun part_of(const PartRuns& runs, std::size_t m) {
  for (const PartRun& run : runs) {
    if (m < static_cast<std::size_t>(run.count)) {
      return run;
    }
    m -= static_cast<std::size_t>(run.count);
  }
  return {};
}

double total_weight(const PartRuns& runs, int microbatches) {
  double total = runs.empty() ? static_cast<double>(microbatches) : 0.0;
  for (const PartRun& run : runs) {
    total += run.count * run.weight;
  }
  return total;
}

double mean_loss(const std::vector<double>& losses, const PartRuns& runs) {
  const double total = total_weight(runs, static_cast<int>(losses.size()));
  double mean = 0.0;
  for (std::size_t m = 0; m < losses.size(); ++m) {
    mean += losses[m] * part_of(runs, m).weight / total;
  }
  return mean;
}

}  // namespace stagecraft
