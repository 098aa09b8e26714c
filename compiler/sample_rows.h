/// sample_rows: how many samples a batch is counted as, for figures that people read: rows of its
/// first input that is split. Used by fit and by the tools.
#pragma once

#include <cstdint>

#include "stagecraft/compiler/batch.h"

namespace stagecraft {

/// 0 where no input is split.
[[nodiscard]] std::int64_t sample_rows(const Batch& inputs);

}  // namespace stagecraft
