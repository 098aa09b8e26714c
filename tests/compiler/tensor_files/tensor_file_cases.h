/// Holds what tests of tensor files share: tensors of every type, and files that must be refused.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft::testing {

/// Returns the types that NumPy has.
[[nodiscard]] const std::vector<at::ScalarType>& numpy_types();

/// Returns the numbers from -2 on, in this shape.
[[nodiscard]] at::Tensor counted(at::ScalarType dtype, const std::vector<std::int64_t>& sizes);

/// Returns whether type, shape and values are equal.
[[nodiscard]] bool same_tensor(const at::Tensor& a, const at::Tensor& b);

struct HostileFile {
  std::string bytes;
  std::vector<std::string> parts;  ///< of the message
};

/// Checks that `read` refuses each file with a message that names the file and has all its parts.
void check_refused_files(const std::vector<HostileFile>& files,
                         const std::function<void(const std::string&)>& read);

}  // namespace stagecraft::testing
