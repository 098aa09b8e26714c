/// operand_of converts an operator's argument to the form in which the graph holds it. Tensors
/// become values; a literal device becomes a placeholder for the stage's device.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// Returns the operand. Errors: CompileCapture for a device other than the program's; the errors of
/// `value_of`.
[[nodiscard]] Operand operand_of(const c10::OperatorHandle& op,
                                 const c10::IValue& argument,
                                 const std::function<ValueId(const at::Tensor&)>& value_of);

}  // namespace stagecraft
