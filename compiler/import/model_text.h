/// model_text: how messages and reports call what a model takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/compiler/import/model_file.h"

namespace stagecraft {

/// "tokens, targets"
[[nodiscard]] std::string names_of(const std::vector<ModelTensor>& tensors);

/// "[2, ?]": `?` for a size that may differ.
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& sizes);

}  // namespace stagecraft
