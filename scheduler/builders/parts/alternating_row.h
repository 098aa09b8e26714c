/// alternating_row writes the row that most builders need: a warm-up of forwards, then one forward
/// and one backward in turn, then the remaining backwards.
///
///     F0 F1  F2 B0  F3 B1  B2 B3        a warm-up of 2, whole backwards
///     F0 F1  F2 I0  F3 I1 W0  I2 W1  I3 W2  W3      split ones; W lags its I by 1
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the stage and microbatch of a row's k-th forward, or k-th backward.
using Turn = std::function<std::pair<int, int>(int k)>;

struct AlternatingRow {
  int total = 0;                  ///< forwards, and as many backwards
  int warm_up = 0;                ///< forwards before the first pair; at most `total` are used
  std::optional<int> weight_lag;  ///< input halves ahead of weight halves; absent: whole backwards
  Turn forward;
  Turn backward;
};

[[nodiscard]] Schedule::Row alternating_row(const AlternatingRow& row);

/// Returns the turns of a row with a single stage, which takes its microbatches in order.
[[nodiscard]] Turn turns_of(int stage);

}  // namespace stagecraft
