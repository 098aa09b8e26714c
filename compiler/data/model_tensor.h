/// ModelTensor describes a tensor that a model takes or returns, as the model's file does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace stagecraft {

struct ModelTensor {
  std::string name;
  bool known = false;  ///< whether the file contains its type and shape; a TorchScript one does not
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;  ///< -1 for a size that may differ
};

}  // namespace stagecraft
