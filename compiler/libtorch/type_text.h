/// type_text names the types of tensors in messages and reports.
#pragma once

#include <string>

#include <c10/core/ScalarType.h>

namespace stagecraft {

/// Returns "float32", the name of NumPy and PyTorch. LibTorch's toString says "Float".
[[nodiscard]] std::string type_text(at::ScalarType type);

}  // namespace stagecraft
