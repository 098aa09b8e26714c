/// packed_state packs a rank's state, or a part of it, into one tensor of bytes, and unpacks it.
///
/// This needs one message and one copy instead of one per tensor. The layout follows from the
/// rank's own state, so only the bytes are sent. Mirrors (mirror.h) use it, and the buffers of
/// replicas travel by it. The state's tensors may be on an accelerator; the packed one is in the
/// host's memory.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// Returns the size of the packed state. Units: bytes.
[[nodiscard]] std::int64_t packed_bytes(const std::vector<NamedTensor>& state);

/// Copies the elements of `state` into `packed`, in the order of the tensors and of their indices.
/// Requires: `packed` is contiguous, [packed_bytes(state)], bytes.
void pack(const std::vector<NamedTensor>& state, const at::Tensor& packed);

/// Writes the result of `pack` for an equal state into the tensors of `state`; all or nothing.
/// Errors: Internal if `packed` has another size or type.
void unpack(const at::Tensor& packed, const std::vector<NamedTensor>& state);

}  // namespace stagecraft
