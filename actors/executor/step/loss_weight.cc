#include "stagecraft/actors/executor/step/loss_weight.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

void check_loss_weight(const LossWeight& weight, const StageGraph& stages) {
  if (weight && !stages.microbatch_sizes().empty()) {
    throw Error(Errc::UsageArgument,
                "loss_weight counts the labels of microbatches of one size, and the stages of this "
                "schedule take microbatches of different sizes: leave it out, or use a schedule "
                "without sizes");
  }
}

std::vector<double> loss_counts(const LossWeight& weight, const Parts& parts) {
  std::vector<double> counts;
  for (std::size_t m = 0; m < parts.labels.size(); ++m) {
    if (parts.weight(m) == 0.0) {
      counts.push_back(0.0);
      continue;
    }
    const double count = [&] {
      const process_end::Elsewhere in_the_users_code;
      return weight(parts.labels[m]);
    }();
    if (!std::isfinite(count) || count <= 0.0) {
      throw Error(Errc::UsageArgument,
                  fmt::format("loss_weight returned {} for microbatch {}, and a loss counts by a "
                              "number above 0: leave samples out that have nothing to learn, or "
                              "make microbatches larger",
                              count,
                              m));
    }
    counts.push_back(count);
  }
  return counts;
}

std::vector<double> relative_weights(std::vector<double> counts, double unit) {
  for (double& count : counts) {
    count /= unit;
  }
  if (std::ranges::all_of(counts, [](double weight) { return weight == 1.0; })) {
    counts.clear();
  }
  return counts;
}

}  // namespace stagecraft
