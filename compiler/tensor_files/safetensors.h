/// .safetensors: tensors by name in one file, as the library of that name writes it.
///
/// SA-1: a header is believed only where each tensor has the bytes that its shape needs, and all of
///       them lie one after the other, none in another and none between.
///
/// Source: github.com/huggingface/safetensors, README, "Format".
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/named_tensor.h"

namespace stagecraft {

/// In the order of the names.
/// Errors: UsageFile, naming the file and the tensor, what was expected and what was found: what is
///         no such file, a name that comes twice, a type other than F64, F32, F16, BF16, I64, I32,
///         I16, I8, U8, BOOL and C64, and what breaks SA-1.
[[nodiscard]] std::vector<NamedTensor> read_safetensors(const std::string& path);

/// Writes a file that appears whole. Tensors that are one (ties) are written under each name.
/// Errors: UsageFile; UsageArgument for a tensor that is not dense or of another type than those.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace stagecraft
