/// NamedTensors holds parameters or buffers by their names, each once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/compiler/program/program.h"

namespace stagecraft::tools {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Returns each tensor once, under the name that the program uses: without further names of ties.
[[nodiscard]] NamedTensors first_names(const Program& program, const std::vector<NamedTensor>& all);

}  // namespace stagecraft::tools
