/// packed_state: a rank's state, or a part of it, as one tensor of bytes, and back.
///
/// One message and one copy in place of one for each tensor; the layout follows from the rank's own
/// state, so nothing is sent beside the bytes. Used by mirrors (mirror.h) and for the buffers of
/// replicas.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph.h"

namespace stagecraft {

/// Units: bytes.
[[nodiscard]] std::int64_t packed_bytes(const std::vector<NamedTensor>& state);

/// Copies the elements of `state`, in its order and in that of their indices, into `packed`.
/// Requires: `packed` is contiguous, [packed_bytes(state)], bytes.
void pack(const std::vector<NamedTensor>& state, const at::Tensor& packed);

/// Writes what `pack` made of an equal state into the tensors of `state`; all or nothing.
/// Errors: Internal when `packed` is of another size or type.
void unpack(const at::Tensor& packed, const std::vector<NamedTensor>& state);

}  // namespace stagecraft
