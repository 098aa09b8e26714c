/// sample_rows counts the samples of a batch for figures that people read: the rows of its first
/// split input. fit and the tools use it.
#pragma once

#include <cstdint>

#include "stagecraft/compiler/module/batch.h"

namespace stagecraft {

/// Returns the number of rows; 0 if no input is split.
[[nodiscard]] std::int64_t sample_rows(const Batch& inputs);

}  // namespace stagecraft
