/// step_parts holds the shapes and weights of the microbatches of a step (PT-2): in runs, as an
/// order holds them, and one by one, as computations use them. Executors, driver and reference
/// share this arithmetic. There are few runs for any number of microbatches, since at most three
/// parts of a batch differ (PT-1), unless losses have weights of their own (loss_weight.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft {

struct Parts;

/// PartRun is `count` equal microbatches in a row.
struct PartRun {
  std::int32_t count = 0;
  std::int32_t shape = 0;  ///< RankShape::number; 0: the compiled shape
  double weight = 1.0;

  friend bool operator==(const PartRun&, const PartRun&) = default;
};

/// PartRuns holds runs in order. No runs: every microbatch has the compiled shape and weighs 1.
using PartRuns = std::vector<PartRun>;

/// Returns the runs of a batch. `scale`: the weight of the first microbatch, relative to others of
/// the same update.
[[nodiscard]] PartRuns runs_of(const Parts& parts, double scale = 1.0);

/// Returns the weight of a further batch's first microbatch if that of the first batch weighs 1
/// (PT-2).
[[nodiscard]] double scale_of(const Parts& further, std::int64_t first_samples);

/// Appends the runs of a further batch of `microbatches`; `all` has runs from then on.
void append(PartRuns& all, const PartRuns& batch, int microbatches);

/// Returns the run entry of microbatch m.
[[nodiscard]] PartRun part_of(const PartRuns& runs, std::size_t m);

/// Returns the weight of all microbatches together.
[[nodiscard]] double total_weight(const PartRuns& runs, int microbatches);

/// Returns the mean of the losses by their weights. `losses`: per microbatch.
[[nodiscard]] double mean_loss(const std::vector<double>& losses, const PartRuns& runs);

template <class V>
decltype(auto) visit_fields(PartRun& m, V&& v) {
  return v(m.count, m.shape, m.weight);
}

}  // namespace stagecraft
