/// What the microbatches of a step are of, and weigh (PT-2): as an order says it, in runs, and as
/// whoever computes with it wants it. Executors, driver and reference do the arithmetic here.
/// There are few runs, however many microbatches: at most three parts of a batch differ (PT-1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft {

struct Parts;

/// So many microbatches, one after the other, are alike.
struct PartRun {
  std::int32_t count = 0;
  std::int32_t variant = 0;  ///< RankVariant::number; 0: the shape compiled for
  double weight = 1.0;

  friend bool operator==(const PartRun&, const PartRun&) = default;
};

/// One after the other; no runs: every microbatch is of the shape compiled for and weighs 1.
using PartRuns = std::vector<PartRun>;

/// `scale`: what the first microbatch weighs, beside others of the same update.
[[nodiscard]] PartRuns runs_of(const Parts& parts, double scale = 1.0);

/// What the first microbatch of a further batch weighs where that of the first weighs 1 (PT-2).
[[nodiscard]] double scale_of(const Parts& further, std::int64_t first_samples);

/// Adds those of a further batch of `microbatches`; `all` has runs from then on.
void append(PartRuns& all, const PartRuns& batch, int microbatches);

/// What microbatch m is.
[[nodiscard]] PartRun part_of(const PartRuns& runs, std::size_t m);

/// Of all microbatches together.
[[nodiscard]] double total_weight(const PartRuns& runs, int microbatches);

/// `losses`: per microbatch.
[[nodiscard]] double mean_loss(const std::vector<double>& losses, const PartRuns& runs);

template <class V>
decltype(auto) visit_fields(PartRun& m, V&& v) {
  return v(m.count, m.variant, m.weight);
}

}  // namespace stagecraft
