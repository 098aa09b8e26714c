/// operator_traits returns facts about an operator that its schema does not contain: the further
/// arguments that it writes, whether it draws random numbers, whether it reads values, and whether
/// the shape of its result depends on them.
///
/// Each fact is about a call, not about the operator: dropout with p = 0 draws nothing, and
/// indexing has a fixed shape unless the index is a mask. The recorder decides by these facts.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace stagecraft {

inline constexpr std::string_view kEqual = "aten::equal";

/// Returns the positions of the arguments that this call writes: those that the schema marks, and
/// the running statistics that the operators of normalization write while training.
[[nodiscard]] std::vector<std::size_t> written_arguments(const c10::OperatorHandle& op,
                                                         const std::vector<c10::IValue>& arguments);

/// Returns true if the operator, called with these arguments, draws from a generator (dropout with
/// p = 0 does not).
[[nodiscard]] bool draws_random_numbers(const c10::OperatorHandle& op,
                                        const torch::jit::Stack& stack);

/// Returns the position of the operator's generator argument.
[[nodiscard]] std::optional<std::size_t> generator_argument(const c10::OperatorHandle& op);

/// Returns whether the call converts a tensor's values into a C++ value on which a module can
/// decide.
[[nodiscard]] bool reads_values(const c10::OperatorHandle& op);

/// Does the same for an operator that a composite one calls. There a read is reported at the
/// operator that performs it: is_nonzero() calls item().
[[nodiscard]] bool reads_values_inside(const c10::OperatorHandle& op);

[[nodiscard]] bool shape_depends_on_values(const c10::OperatorHandle& op,
                                           const std::vector<c10::IValue>& arguments);

/// Returns the position of the argument whose values alone determine the shape of the result;
/// nothing if all arguments do. If that argument is constant, so is the shape.
[[nodiscard]] std::optional<std::size_t> shaping_argument(const c10::OperatorHandle& op);

/// Returns whether `tensor`, part of the shaping argument, determines the shape. Of the indices of
/// aten::index only masks do.
[[nodiscard]] bool shapes(const c10::OperatorHandle& op, const at::Tensor& tensor);

/// Returns whether the operator checks the values that it reads again in every replay and returns a
/// shape that they do not change. It then reports classes out of range, wrong lengths, negative
/// probabilities, a matrix without an inverse, or another answer. A native stage does it in its own
/// code.
[[nodiscard]] bool checks_what_it_reads(std::string_view name);

/// Returns whether both arguments are one tensor, which is equal to itself for all values.
[[nodiscard]] bool compares_with_itself(const c10::OperatorHandle& op,
                                        const std::vector<c10::IValue>& arguments);

/// Returns whether the call compares floating-point tensors. Attention compares query and key to
/// find out whether they are the same tensor. Two results of arithmetic are expected to differ, so
/// the answer is recorded and every replay must get it again. For integers the comparison would be
/// a decision on data.
[[nodiscard]] bool compares_floats(const c10::OperatorHandle& op,
                                   const std::vector<c10::IValue>& arguments);

}  // namespace stagecraft
