/// Holds the parts of the list in transport_conformance.h, and what their cases share.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/conformance/transport_case.h"

namespace stagecraft::conformance {

/// Each sentence of the contract.
[[nodiscard]] const std::vector<TransportCase>& contract_cases();
/// Tensors of every type, size and layout.
[[nodiscard]] const std::vector<TransportCase>& tensor_cases();
/// Many tensors at once, and transfers that are interrupted.
[[nodiscard]] const std::vector<TransportCase>& load_cases();

inline const Error kClosed(Errc::WorkerFailed, "a test ended the step");

inline Tag on_edge(int edge, int microbatch = 0, int epoch = 0) {
  return {.epoch = Epoch{epoch},
          .submission = Submission{7},
          .edge = EdgeId{edge},
          .microbatch = Microbatch{microbatch}};
}

inline bool arrives_whole(const at::Tensor& sent, const at::Tensor& arrived) {
  return arrived.scalar_type() == sent.scalar_type() && arrived.sizes() == sent.sizes() &&
         at::equal(arrived, sent);
}

/// Returns values that differ from byte to byte, and from those of another `first`.
inline at::Tensor bytes_from(std::int64_t count, std::int64_t first = 0) {
  const at::Tensor numbers =
      at::arange(first, first + (count + 7) / 8, at::kLong).mul(0x9E3779B97F4A7C1);
  return numbers.view(at::kByte).slice(0, 0, count);
}

}  // namespace stagecraft::conformance
