/// .npy: one tensor in a file, as numpy.save writes it and numpy.load reads it.
///
/// Read are versions 1 to 3, rows or columns first, little endian; written is version 1, rows
/// first. NumPy has no bfloat16: such a tensor is written as float32, which holds each of its
/// numbers.
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
};

/// What the file says of its tensor, which need not be read for that.
/// Errors: UsageFile, naming the file, what was expected and what was found: no such file, a type
///         that is not boolean, a whole number of 8 to 64 bits (without a sign: 8), or a real or
///         complex one; and a file that is longer or shorter than it says.
[[nodiscard]] NpyHeader read_npy_header(const std::string& path);

/// The tensor, rows first. Errors: as read_npy_header.
[[nodiscard]] at::Tensor read_npy(const std::string& path);

/// Writes a file that appears whole.
/// Errors: UsageFile; UsageArgument for a tensor that is not dense or of a type without a name in
///         NumPy.
void write_npy(const std::string& path, const at::Tensor& tensor);

}  // namespace stagecraft
