/// boxed_call reads an operator's arguments and results from the stack that the dispatcher hands to
/// a boxed fallback.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace stagecraft {

/// Returns the arguments. Requires: `op` is about to run.
[[nodiscard]] inline std::vector<c10::IValue> arguments_on(const torch::jit::Stack& stack,
                                                           const c10::OperatorHandle& op) {
  return {stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()), stack.end()};
}

/// Returns the results. Requires: `op` has just run.
[[nodiscard]] inline std::vector<c10::IValue> results_on(const torch::jit::Stack& stack,
                                                         const c10::OperatorHandle& op) {
  return {stack.end() - static_cast<std::ptrdiff_t>(op.schema().returns().size()), stack.end()};
}

/// Calls `visit` for every defined tensor in an argument or result, lists included.
template <class Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      visit(value.toTensor());
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      for_each_tensor(element, visit);
    }
  }
}

/// Returns "aten::add.Tensor", for messages.
[[nodiscard]] inline std::string full_name(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

}  // namespace stagecraft
