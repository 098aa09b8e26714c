/// Makes tensors for an outbox.
#pragma once

#include <cstdint>

#include <ATen/ops/arange.h>

#include "stagecraft/futures/transport/zmq/frames/outbox.h"

namespace stagecraft {

/// Returns a tensor of so many bytes, which count from `first` on, for the edge.
inline Outgoing outgoing(std::int64_t bytes, int edge, std::int64_t first = 0) {
  return {.network = NetworkId{1},
          .from = Rank{0},
          .to = Rank{1},
          .tag = {.edge = EdgeId{edge}},
          .tensor = at::arange(first, first + bytes, at::kLong).to(at::kByte)};
}

}  // namespace stagecraft
