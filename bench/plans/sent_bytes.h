/// bytes_sent tells what one rank sends to others in a training step for sums, gathers and
/// exchanges, by the formula: a scatter, gather or exchange over n ranks sends (n - 1) / n of its
/// bucket or samples, a sum twice as much. The padding of shards, and the norms of parameters that
/// ranks divide, are not in it. Units: bytes.
#pragma once

#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/base/ids.h"

namespace stagecraft::bench {

struct SentBytes {
  double copies = 0;     ///< for sums and gathers of gradients and weights
  double exchanges = 0;  ///< of samples

  [[nodiscard]] double sum() const { return copies + exchanges; }
};

/// Ties are not counted.
[[nodiscard]] SentBytes bytes_sent(const Execution& execution, Rank rank);

}  // namespace stagecraft::bench
