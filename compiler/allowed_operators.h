/// allowed_operators: which operators a program may call that this process did not make: a model's
/// file, or a stage of another process.
///
/// LibTorch's registry also has operators that open files (`from_file`), follow pointers (packed
/// weights, `set_`), believe indices (`*_backward`, most private ones) or change the process.
/// An attacker needs one of them. The list, in allowed_operator_names.cc, has the others: they take
/// tensors and numbers, check both, and return tensors. It was made from LibTorch's registry and
/// reviewed; a part of it was also called with hundreds of wrong arguments each. The folder
/// tests/golden/compiler holds the operators that are not on it, each with the reason; a new
/// LibTorch shows as a difference there.
///
/// AO-1: an operator of LibTorch that is not on the list is refused, whatever its arguments.
/// AO-2: an operator that the user's own program registers, in a namespace of its own, may stand in
///       the stages of that program. A file may not call it.
/// AO-3: the list holds against wrong memory accesses, files and side effects. A program can still
///       ask for too much memory or time, or end the process by a division by zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/function_schema.h>
#include <ATen/core/operator_name.h>
#include <ATen/core/stack.h>

namespace stagecraft {

enum class ProgramOrigin : std::uint8_t { ModelFile, OtherProcess };

/// Returns why a program of this origin may not call the operator; nothing where it may.
[[nodiscard]] std::optional<std::string> operator_refusal(const c10::OperatorName& name,
                                                          ProgramOrigin origin);

/// Whether the operator is on the list.
[[nodiscard]] bool is_allowed_operator(const c10::OperatorName& name);

/// Whether a function ("aten::len") or instruction ("prim::If") of TorchScript may stand in a file.
/// They have no entry in the dispatcher.
[[nodiscard]] bool is_allowed_in_script(std::string_view name);

/// Whether LibTorch itself uses the namespace of the operator.
[[nodiscard]] bool is_of_libtorch(std::string_view name);

/// Whether an operator may get `number` for an argument of this type. Enumerations reach operators
/// as integers, and LibTorch does not check them.
[[nodiscard]] bool may_be_number(const c10::Type& real_type, std::int64_t number);
/// Whether the argument is one of LibTorch's enumerations.
[[nodiscard]] bool is_enumeration(const c10::Type& real_type);

/// Checks arguments that an allowed operator believes. Errors: CompileShape.
using ArgumentCheck = void (*)(const torch::jit::Stack& arguments);
/// Returns the check of the operator's arguments; null for those that check all of them.
[[nodiscard]] ArgumentCheck argument_check(const c10::OperatorName& name);

namespace internal {

extern const std::string_view kAllowedOperators;
extern const std::string_view kAllowedScriptFunctions;
extern const std::string_view kAllowedScriptInstructions;

}  // namespace internal

}  // namespace stagecraft
