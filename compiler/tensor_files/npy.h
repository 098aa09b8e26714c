/// npy reads and writes .npy files: one tensor in a file, as numpy.save writes it and numpy.load
/// reads it.
///
/// It reads versions 1 to 3, rows or columns first, little endian; it writes version 1, rows first.
/// NumPy has no bfloat16: such a tensor is written as float32, which represents each of its numbers
/// exactly.
///
/// Source: numpy/lib/format.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

struct NpyHeader {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;
  bool columns_first = false;  ///< "fortran_order"
  std::uint64_t begin = 0;     ///< of the numbers in the file, in bytes
};

/// Reads the header without the tensor.
/// Errors: UsageFile, naming the file, with the expected and the found value: no such file, a type
///         that is not boolean, a whole number of 8 to 64 bits (without a sign: 8), or a real or
///         complex one; and a file that is longer or shorter than it says.
[[nodiscard]] NpyHeader read_npy_header(const std::string& path);

/// Reads the tensor, rows first. Errors: as read_npy_header.
[[nodiscard]] at::Tensor read_npy(const std::string& path);

/// Writes the file so that it appears whole.
/// Errors: UsageFile; UsageArgument for a tensor that is not dense or of a type without a name in
///         NumPy.
void write_npy(const std::string& path, const at::Tensor& tensor);

}  // namespace stagecraft
