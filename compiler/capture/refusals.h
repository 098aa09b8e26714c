/// refusals throws the recorder's errors for operators that a replay could not repeat (CA-2). Each
/// error says in one sentence what to do instead. All of them are CompileCapture and name the
/// stage.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace stagecraft {

/// Returns " (in stage "x")", " (in the loss)" or " (outside all stages)", the end of every capture
/// message.
[[nodiscard]] std::string under_marker();

/// Checks an operator.
/// Errors: for an operator that reads values, or returns a shape that depends on them.
void check_replayable(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments);

/// Refuses `op`, which found two tensors equal, perhaps by chance.
[[noreturn]] void refuse_equal(const c10::OperatorHandle& op);

/// Refuses `op`, which `running`, a composite operator, calls.
[[noreturn]] void refuse_hidden_read(std::string_view running, const c10::OperatorHandle& op);
[[noreturn]] void refuse_hidden_draw(std::string_view running, const c10::OperatorHandle& op);

/// Refuses the write of a parameter. `through_another`: the written tensor is not the parameter
/// itself but shares its memory.
[[noreturn]] void refuse_parameter_write(const c10::OperatorHandle& op,
                                         std::string_view parameter,
                                         bool through_another);

}  // namespace stagecraft
