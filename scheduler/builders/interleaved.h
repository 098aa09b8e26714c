/// Interleaved 1F1B gives each row v chunks in a loop, so the pipeline fills v times faster.
///
///     0F0 0F1 2F0 2F1  .  2B0  .  2B1 0B0 0B1     stages 0 and 2
///          1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1         stages 1 and 3
///
/// Microbatches pass through a row's chunks in groups of g = M / max(1, M / P). With one chunk the
/// warm-up is twice that of 1F1B, so the schedule differs from 1F1B. Source: Narayanan et al.,
/// "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM".
#pragma once

#include <string_view>

#include "stagecraft/scheduler/builders/parts/alternating_row.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the unit-time array of `ranks` rows and ranks x chunks stages.
/// Errors: ScheduleParameter unless microbatches are a multiple of max(1, microbatches / ranks).
[[nodiscard]] Schedule interleaved(int ranks, int microbatches, int chunks);

/// LoopOrder is the order of a row's (chunk, microbatch) pairs. The zero-bubble variant shares it.
class LoopOrder {
 public:
  /// Errors: ScheduleParameter as interleaved(), with the name `builder`.
  LoopOrder(std::string_view builder, int ranks, int microbatches, int chunks);

  [[nodiscard]] int total() const { return chunks_ * microbatches_; }
  [[nodiscard]] int group() const { return group_; }
  [[nodiscard]] Turn forwards(int row) const;
  [[nodiscard]] Turn backwards(int row) const;

 private:
  [[nodiscard]] int microbatch(int k) const;

  int ranks_;
  int microbatches_;
  int chunks_;
  int group_;
};

}  // namespace stagecraft
