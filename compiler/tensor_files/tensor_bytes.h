/// tensor_bytes is common to the readers of tensor files: it reads a file's bytes and computes how
/// many bytes a tensor has.
///
/// TB-1: a size that a file names is compared with the bytes that exist before anything is
///       allocated for it.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// TensorFile is a file that is read from its beginning to its end, or at places.
class TensorFile {
 public:
  /// Opens the file. Errors: UsageFile for a file that does not exist, may not be opened or is not
  /// a regular file.
  explicit TensorFile(const std::string& path);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t left() const { return size_ - at_; }

  /// Reads the next bytes. Requires: so many are left. Errors: UsageFile if reading fails.
  void read(void* to, std::uint64_t bytes);
  [[nodiscard]] std::string text(std::uint64_t bytes);

  /// Reads the bytes from `at` on, and goes on behind them. Errors: UsageFile for a file that has
  /// become shorter.
  void read_at(std::uint64_t at, void* to, std::uint64_t bytes);

  /// Reads the next bytes as a tensor with default strides. Requires: as read.
  [[nodiscard]] at::Tensor tensor(at::ScalarType dtype, const std::vector<std::int64_t>& sizes);

  /// Throws UsageFile with the file's name, the expected and the found value.
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;

  /// Returns the bytes of a tensor. Keeps TB-1: callers call it before they allocate.
  /// Errors: UsageFile for sizes below 0, too many bytes, and numbers above 64 bits.
  [[nodiscard]] std::uint64_t bytes_of(at::ScalarType dtype,
                                       const std::vector<std::int64_t>& sizes) const;

 private:
  const std::string path_;
  std::ifstream in_;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;
};

/// Returns the tensor in the form that a file holds: on the CPU, row after row, and detached.
/// Errors: UsageArgument, naming it, for a tensor that is not dense or is quantized.
[[nodiscard]] at::Tensor plain_tensor(const std::string& name, const at::Tensor& tensor);

/// Returns its bytes. Requires: plain_tensor made it.
[[nodiscard]] std::string_view bytes_view(const at::Tensor& plain);

}  // namespace stagecraft
