/// What the recorder refuses because a replay would not do what the module did (CA-2), each in one
/// sentence that says what to do instead. All of them throw CompileCapture and name the stage.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace stagecraft {

/// " (in stage "x")", " (in the loss)" or " (outside all stages)": the end of every capture
/// message.
[[nodiscard]] std::string under_marker();

/// Errors: for an operator that reads values, or returns a shape that hangs on them.
void check_replayable(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments);

/// `op` found two tensors equal, perhaps by chance.
[[noreturn]] void refuse_equal(const c10::OperatorHandle& op);

/// `op` stands inside `running`, a composite operator.
[[noreturn]] void refuse_hidden_read(std::string_view running, const c10::OperatorHandle& op);
[[noreturn]] void refuse_hidden_draw(std::string_view running, const c10::OperatorHandle& op);

/// `through_another`: the tensor that is written is not the parameter but shares its memory.
[[noreturn]] void refuse_parameter_write(const c10::OperatorHandle& op,
                                         std::string_view parameter,
                                         bool through_another);

}  // namespace stagecraft
