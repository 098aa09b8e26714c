/// registered: what a module has registered, as compile takes it.
#pragma once

#include <vector>

#include "stagecraft/compiler/named_tensor.h"

namespace stagecraft::internal {

/// A tensor registered under several names is one parameter, known by its first name.
[[nodiscard]] std::vector<NamedTensor> without_aliases(const std::vector<NamedTensor>& tensors);

}  // namespace stagecraft::internal
