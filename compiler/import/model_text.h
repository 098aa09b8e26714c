/// model_text formats a model's inputs for messages and reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/compiler/import/model_file.h"

namespace stagecraft {

/// Returns "tokens, targets".
[[nodiscard]] std::string names_of(const std::vector<ModelTensor>& tensors);

/// Returns "[2, ?]", with `?` for a size that may differ.
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& sizes);

}  // namespace stagecraft
