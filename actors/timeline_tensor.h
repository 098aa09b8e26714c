/// A rank's timeline as a tensor, the form in which it travels to the driver beside the step's
/// report: a message's size does not depend on how many instructions a plan has.
///
/// The plan thread packs it, the driver unpacks it.
/// Shapes: [instructions, 6], int64; the columns are InstructionTime's fields in their order.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/timeline.h"

namespace stagecraft {

[[nodiscard]] at::Tensor pack_timeline(const std::vector<InstructionTime>& timeline);

/// Its times with `clock_offset` added (base/clock.h).
/// Errors: Internal when the tensor is no timeline of `rows` instructions.
[[nodiscard]] std::vector<InstructionTime> unpack_timeline(const at::Tensor& tensor,
                                                           std::int64_t rows,
                                                           std::int64_t clock_offset);

}  // namespace stagecraft
