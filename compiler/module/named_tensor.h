/// NamedTensor is a parameter or buffer of a module with its name there.
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace stagecraft {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

}  // namespace stagecraft
