/// dispatched_values packs the description of what a task has made into a tensor, which travels
/// from the rank to the driver (dispatch_tags.h).
///
/// Shape: [n], float64: for each value whether it is a gradient, its number of dimensions, its
/// sizes, its norm.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/step/dispatched_column.h"

namespace stagecraft {

/// Returns the description of a tensor.
[[nodiscard]] DispatchedValue describe(const at::Tensor& tensor, bool gradient);

[[nodiscard]] at::Tensor pack_values(const std::vector<DispatchedValue>& values);

/// Errors: Internal for a tensor that pack_values did not make.
[[nodiscard]] std::vector<DispatchedValue> unpack_values(const at::Tensor& packed);

}  // namespace stagecraft
