/// What the readers of tensor files have in common: a file's bytes, and how many a tensor has.
///
/// TB-1: a size that a file names is held against the bytes that are there before anything is
///       allocated for it.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// A file that is read from its beginning to its end.
class TensorFile {
 public:
  /// Errors: UsageFile for what is not there, may not be opened or is no regular file.
  explicit TensorFile(const std::string& path);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t left() const { return size_ - at_; }

  /// The next bytes. Requires: there are so many left. Errors: UsageFile where reading fails.
  void read(void* to, std::uint64_t bytes);
  [[nodiscard]] std::string text(std::uint64_t bytes);

  /// The next bytes as a tensor without strides of its own. Requires: as read.
  [[nodiscard]] at::Tensor tensor(at::ScalarType dtype, const std::vector<std::int64_t>& sizes);

  /// Errors: UsageFile, always: the file's name, what was expected, and what was found.
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;

  /// The bytes of a tensor. Keeps TB-1: who allocates asks it first.
  /// Errors: UsageFile for sizes below 0, too many of them, and what no 64-bit number holds.
  [[nodiscard]] std::uint64_t bytes_of(at::ScalarType dtype,
                                       const std::vector<std::int64_t>& sizes) const;

 private:
  const std::string path_;
  std::ifstream in_;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;
};

/// The tensor as a file holds it: on the CPU, row after row, and detached.
/// Errors: UsageArgument, naming it, for one that is not dense or is quantized.
[[nodiscard]] at::Tensor plain_tensor(const std::string& name, const at::Tensor& tensor);

/// Its bytes. Requires: plain_tensor made it.
[[nodiscard]] std::string_view bytes_view(const at::Tensor& plain);

}  // namespace stagecraft
