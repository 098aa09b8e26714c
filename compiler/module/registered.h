/// registered prepares the tensors that a module has registered for compile.
#pragma once

#include <vector>

#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft::internal {

/// Returns each tensor once. A tensor registered under several names is one parameter, known by its
/// first name.
[[nodiscard]] std::vector<NamedTensor> without_aliases(const std::vector<NamedTensor>& tensors);

}  // namespace stagecraft::internal
