#include "stagecraft/compiler/tensor_files/tensor_bytes.h"

#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/compiler/module/split_batch.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMostDimensionsInFiles = 64;

}  // namespace

TensorFile::TensorFile(const std::string& path) : path_(path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (!std::filesystem::exists(status)) {
    refuse("a file", "none");
  }
  if (!std::filesystem::is_regular_file(status)) {
    refuse("a file", std::filesystem::is_directory(status) ? "a directory" : "something else");
  }
  errno = 0;
  in_.open(path, std::ios::binary);
  size_ = std::filesystem::file_size(path, failure);
  if (!in_ || failure) {
    refuse("a file that can be read", std::generic_category().message(errno));
  }
}

void TensorFile::read(void* to, std::uint64_t bytes) {
  in_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  if (!in_) {
    refuse(fmt::format("{} bytes from {} on", bytes, at_), "a file that ends before");
  }
  at_ += bytes;
}

void TensorFile::read_at(std::uint64_t at, void* to, std::uint64_t bytes) {
  in_.clear();
  in_.seekg(static_cast<std::streamoff>(at));
  at_ = at;
  read(to, bytes);
}

std::string TensorFile::text(std::uint64_t bytes) {
  std::string text(bytes, '\0');
  read(text.data(), bytes);
  return text;
}

at::Tensor TensorFile::tensor(at::ScalarType dtype, const std::vector<std::int64_t>& sizes) {
  // A Boolean is a byte of 0 or 1 in memory, but may be any byte in a file.
  const bool truths = dtype == at::kBool;
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(truths ? at::kByte : dtype));
  read(tensor.data_ptr(), tensor.nbytes());
  return truths ? tensor.to(at::kBool) : tensor;
}

void TensorFile::refuse(const std::string& expected, const std::string& found) const {
  throw Error(Errc::UsageFile, fmt::format("{}: expected {}, found {}", path_, expected, found));
}

std::uint64_t TensorFile::bytes_of(at::ScalarType dtype,
                                   const std::vector<std::int64_t>& sizes) const {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (sizes.size() > kMostDimensionsInFiles) {
    refuse(fmt::format("at most {} dimensions", kMostDimensionsInFiles),
           fmt::format("{}", sizes.size()));
  }
  // If one size is 0, strides are computed from the other sizes and must fit too.
  std::uint64_t bytes = at::elementSize(dtype);
  bool empty = false;
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      refuse("sizes from 0 on", fmt::format("{}", size));
    }
    const auto factor = static_cast<std::uint64_t>(size);
    empty = empty || size == 0;
    if (size > 0 && bytes > kMost / factor) {
      refuse("a shape that memory can have", fmt::format("[{}]", fmt::join(sizes, ", ")));
    }
    bytes *= size > 0 ? factor : 1;
  }
  return empty ? 0 : bytes;
}

at::Tensor plain_tensor(const std::string& name, const at::Tensor& tensor) {
  const bool elsewhere = tensor.defined() && !is_program_device(tensor.device());
  const std::string fault = elsewhere ? "" : why_unusable(tensor);
  if (!fault.empty()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("the tensor {} {}; a file holds dense ones: convert it before (to_dense, "
                    "dequantize)",
                    name,
                    fault));
  }
  return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
}

std::string_view bytes_view(const at::Tensor& plain) {
  return {static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()};
}

}  // namespace stagecraft
