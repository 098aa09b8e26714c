/// timeline_tensor packs a rank's timeline into a tensor. It travels to the driver in this form,
/// apart from the step's report, so that a message's size does not depend on the number of
/// instructions.
///
/// The plan thread packs it, the driver unpacks it.
/// Shapes: [instructions, 6], int64; the columns are InstructionTime's fields in their order.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/device/timeline.h"

namespace stagecraft {

[[nodiscard]] at::Tensor pack_timeline(const std::vector<InstructionTime>& timeline);

/// Returns the timeline with `clock_offset` added to its times (base/clock.h).
/// Errors: Internal if the tensor is no timeline of `rows` instructions.
[[nodiscard]] std::vector<InstructionTime> unpack_timeline(const at::Tensor& tensor,
                                                           std::int64_t rows,
                                                           std::int64_t clock_offset);

}  // namespace stagecraft
