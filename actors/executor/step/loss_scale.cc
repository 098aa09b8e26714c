#include "stagecraft/actors/executor/step/loss_scale.h"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

constexpr double kLargest = 0x1p64;

bool is_factor(double factor) {
  int exponent = 0;
  return factor >= 1.0 && factor <= kLargest && std::frexp(factor, &exponent) == 0.5;
}

}  // namespace

LossScale first_scale(const std::optional<LossScaling>& scaling,
                      const std::optional<LossScale>& saved) {
  return saved.value_or(LossScale{.factor = scaling ? scaling->initial : 1.0});
}

std::optional<LossScale> kept_scale(const std::optional<LossScaling>& scaling,
                                    const LossScale& scale) {
  return scaling || scale != LossScale() ? std::optional(scale) : std::nullopt;
}

LossScale after(LossScale scale, bool skipped, const LossScaling& scaling) {
  if (skipped) {
    return {.factor = std::max(scale.factor / 2, 1.0), .good = 0, .skipped = scale.skipped + 1};
  }
  if (++scale.good >= scaling.growth_interval) {
    scale.factor = std::min(scale.factor * 2, kLargest);
    scale.good = 0;
  }
  return scale;
}

bool is_possible(const LossScale& scale, std::int64_t steps) {
  return is_factor(scale.factor) && scale.good >= 0 && scale.skipped >= 0 &&
         scale.skipped <= steps && scale.good <= steps - scale.skipped;
}

bool is_possible(const LossScaling& scaling) {
  return is_factor(scaling.initial) && scaling.growth_interval >= 1;
}

}  // namespace stagecraft
