/// LossScale keeps small gradients of float16 from becoming zero: the loss is multiplied by a power
/// of two before the backward, and the sums of gradients are divided by it.
///
/// The driver keeps it and tells the ranks in the order of each step.
/// LX-1: if a gradient is not finite although losses are, all ranks learn it in the vote and leave
///       weights and optimizer as they are, and the factor is halved. With a factor of 1 it is an
///       error, as without scaling.
/// Source: Micikevicius et al., Mixed Precision Training, section 3.2; the numbers are PyTorch's.
#pragma once

#include <cstdint>
#include <optional>

namespace stagecraft {

/// LossScaling says how the factor changes.
struct LossScaling {
  double initial = 65536.0;             ///< a power of two from 1 to 2^64
  std::int64_t growth_interval = 2000;  ///< at least 1; after as many updates the factor is doubled
};

struct LossScale {
  double factor = 1.0;
  std::int64_t good = 0;     ///< updates since the factor last changed
  std::int64_t skipped = 0;  ///< steps so far that changed no weight

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

/// Returns the scale of a run's first step. `saved`: that of the run that it continues; a run that
/// does not scale keeps it as it is.
[[nodiscard]] LossScale first_scale(const std::optional<LossScaling>& scaling,
                                    const std::optional<LossScale>& saved = std::nullopt);

/// Returns the scale that a checkpoint keeps: none if neither this run nor one before has scaled.
[[nodiscard]] std::optional<LossScale> kept_scale(const std::optional<LossScaling>& scaling,
                                                  const LossScale& scale);

/// Returns the scale of the next step.
[[nodiscard]] LossScale after(LossScale scale, bool skipped, const LossScaling& scaling);

/// Returns whether a run of `steps` steps can have this scale.
[[nodiscard]] bool is_possible(const LossScale& scale, std::int64_t steps);

[[nodiscard]] bool is_possible(const LossScaling& scaling);

template <class V>
decltype(auto) visit_fields(LossScaling& m, V&& v) {
  return v(m.initial, m.growth_interval);
}
template <class V>
decltype(auto) visit_fields(LossScale& m, V&& v) {
  return v(m.factor, m.good, m.skipped);
}

}  // namespace stagecraft
