/// exported_symbols does arithmetic on sizes: it runs the nodes of an exported program that compute
/// numbers, not tensors.
///
/// A program exported with dynamic sizes reads them (`aten.sym_size.int`) and computes with them by
/// Python's operators. In a run on one microbatch they are plain numbers.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

namespace stagecraft::exported {

/// SymbolFunction maps numbers (or a tensor's shape) to a number.
using SymbolFunction = c10::IValue (*)(const std::vector<c10::IValue>& arguments);

/// Returns the function that a node's target names ("_operator.add",
/// "torch.ops.aten.sym_size.int"); nothing if it names none.
[[nodiscard]] std::optional<SymbolFunction> symbol_function(std::string_view target);

}  // namespace stagecraft::exported
