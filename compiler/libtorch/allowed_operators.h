/// allowed_operators decides which operators a program of another origin may call: a model's file,
/// or a stage of another process.
///
/// LibTorch's registry also has operators that open files (`from_file`), follow pointers (packed
/// weights, `set_`), trust indices without checking them (`*_backward`, most private ones) or
/// change the process. An attacker needs one of them. The list in allowed_operator_names.cc holds
/// the other operators: they take tensors and numbers, check both, and return tensors. It was made
/// from LibTorch's registry and reviewed; some of its operators were also called with hundreds of
/// wrong arguments each. The folder tests/golden/compiler holds the operators that are not on the
/// list, each with the reason. The operators of a new LibTorch show up as a difference there.
///
/// AO-1: an operator of LibTorch that is not on the list is refused for all arguments.
/// AO-2: the stages of the user's own program may call an operator that this program registers in a
///       namespace of its own. A file may not call it.
/// AO-3: the list protects against wrong memory accesses, use of files and side effects. A program
///       can still ask for too much memory or time, or end the process by a division by zero.
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

/// Returns the reason why a program of this origin may not call the operator; nothing if it may.
[[nodiscard]] std::optional<std::string> operator_refusal(const c10::OperatorName& name,
                                                          ProgramOrigin origin);

/// Returns whether the operator is on the list.
[[nodiscard]] bool is_allowed_operator(const c10::OperatorName& name);

/// Returns whether a file may use this function ("aten::len") or instruction ("prim::If") of
/// TorchScript. They have no entry in the dispatcher.
[[nodiscard]] bool is_allowed_in_script(std::string_view name);

/// Returns whether LibTorch itself uses the operator's namespace.
[[nodiscard]] bool is_of_libtorch(std::string_view name);

/// Returns whether an argument of this type may have the value `number`. Enumerations reach
/// operators as integers, and LibTorch does not check them.
[[nodiscard]] bool may_be_number(const c10::Type& real_type, std::int64_t number);
/// Returns whether the argument is one of LibTorch's enumerations.
[[nodiscard]] bool is_enumeration(const c10::Type& real_type);

/// Checks arguments that an allowed operator does not check itself. Errors: CompileShape.
using ArgumentCheck = void (*)(const torch::jit::Stack& arguments);
/// Returns the check for the operator's arguments; null if the operator checks all of them itself.
[[nodiscard]] ArgumentCheck argument_check(const c10::OperatorName& name);

namespace internal {

extern const std::string_view kAllowedOperators;
extern const std::string_view kAllowedScriptFunctions;
extern const std::string_view kAllowedScriptInstructions;

}  // namespace internal

}  // namespace stagecraft
