/// safetensors reads and writes .safetensors files: tensors by name in one file, as the library of
/// that name writes them.
///
/// SA-1: a header is accepted only if each tensor has exactly the bytes that its shape needs, and
///       the tensors lie one after the other without overlaps and gaps.
///
/// Source: github.com/huggingface/safetensors, README, "Format".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft {

/// SafetensorsEntry is the place of a tensor in the file.
struct SafetensorsEntry {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;
  std::uint64_t begin = 0, end = 0;  ///< of its numbers in the file, in bytes
};

/// Reads the header without the tensors; they come in the order of their bytes.
/// Errors: as read_safetensors.
[[nodiscard]] std::vector<SafetensorsEntry> read_safetensors_header(const std::string& path);

/// Returns the tensors in the order of their names.
/// Errors: UsageFile, naming the file and the tensor, with the expected and the found value: a file
///         of another kind, a name that comes twice, a type other than F64, F32, F16, BF16, I64,
///         I32, I16, I8, U8, BOOL and C64, and any break of SA-1.
[[nodiscard]] std::vector<NamedTensor> read_safetensors(const std::string& path);

/// Writes the file so that it appears whole. A tensor with several names (ties) is written under
/// each.
/// Errors: UsageFile; UsageArgument for a tensor that is not dense or of another type than those.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace stagecraft
