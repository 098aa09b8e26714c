/// Ticket tells the receiver of a tensor that NCCL moves what comes.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"

namespace stagecraft {

struct Ticket {
  std::int64_t number = 0;  ///< of the transfer among those of its pair of ranks, from 0
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes, strides;  ///< the tensor is dense
};

/// Returns the ticket as a tensor of the host. Requires: `tensor` is dense.
[[nodiscard]] at::Tensor to_ticket(const at::Tensor& tensor, std::int64_t number);

/// Errors: WireFormat for what is no ticket of a dense tensor. `from`: for the message.
[[nodiscard]] Ticket read_ticket(const at::Tensor& ticket, Rank from);

}  // namespace stagecraft
