/// What an operator does that its schema does not say: which arguments it writes nevertheless,
/// whether it draws random numbers, reads values, or returns a shape that hangs on them.
///
/// All of it is asked of a call, not of the operator: dropout with p = 0 draws nothing, and
/// indexing has a fixed shape unless it is by a mask. Questions alone: what capture makes of the
/// answers is the recorder's.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace stagecraft {

inline constexpr std::string_view kEqual = "aten::equal";

/// The positions of the arguments that this call writes: those the schema marks, and the running
/// statistics that the operators of normalization write while training.
[[nodiscard]] std::vector<std::size_t> written_arguments(const c10::OperatorHandle& op,
                                                         const std::vector<c10::IValue>& arguments);

/// True when the operator, called like this, takes numbers from a generator (dropout with p = 0
/// does not).
[[nodiscard]] bool draws_random_numbers(const c10::OperatorHandle& op,
                                        const torch::jit::Stack& stack);

/// The position of the operator's generator argument.
[[nodiscard]] std::optional<std::size_t> generator_argument(const c10::OperatorHandle& op);

/// Whether the call makes a number of C++ out of a tensor's values, on which a module can decide.
[[nodiscard]] bool reads_values(const c10::OperatorHandle& op);

/// Likewise of an operator that a composite one calls, where a read is told at the operator that
/// makes it: is_nonzero() calls item().
[[nodiscard]] bool reads_values_inside(const c10::OperatorHandle& op);

[[nodiscard]] bool shape_depends_on_values(const c10::OperatorHandle& op,
                                           const std::vector<c10::IValue>& arguments);

/// The argument whose values alone make the shape of what the operator returns; nothing where all
/// arguments do. One that is constant makes a shape that is.
[[nodiscard]] std::optional<std::size_t> shaping_argument(const c10::OperatorHandle& op);

/// Whether `tensor`, of the shaping argument, makes the shape: of what aten::index is given masks
/// alone do.
[[nodiscard]] bool shapes(const c10::OperatorHandle& op, const at::Tensor& tensor);

/// Whether the operator reads values inside that it looks for again in every replay, and returns a
/// shape that they do not change: classes out of range, lengths, a matrix without inverse, another
/// answer.
[[nodiscard]] bool checks_what_it_reads(std::string_view name);

/// Two tensors that are one: equal whatever the values.
[[nodiscard]] bool compares_with_itself(const c10::OperatorHandle& op,
                                        const std::vector<c10::IValue>& arguments);

/// Attention asks whether query and key are the same tensor by comparing them. That two results of
/// arithmetic differ is recorded as an answer that every replay has to get again; of integers it
/// would be a decision on data.
[[nodiscard]] bool compares_floats(const c10::OperatorHandle& op,
                                   const std::vector<c10::IValue>& arguments);

}  // namespace stagecraft
