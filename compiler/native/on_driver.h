/// on_driver runs code of the user's program on the driver, between two parts of a stage: a matcher
/// on the host, a metric that decides, a print. Nothing traces it.
///
///   auto indices = sc::on_driver("matcher", match, boxes.detach(), targets);   // in forward, loss
///
/// It gets the tensors that it asks for, a microbatch at a time, and hands tensors on. It runs on a
/// rank of its own, a thread of the driver's process, also if all others are worker processes. A
/// schedule does not list it: the stage is divided there, its rank runs what comes before and what
/// comes after, and checks, plans, traces and drawings show the parts.
///
/// OD-1: gradients flow through it to its tensors, by LibTorch's autograd, but not to what it holds
///       besides. compile refuses a result that has none where one is due.
/// OD-2: results have in every microbatch the number, shapes and types that they had at capture.
/// OD-3: it draws no random numbers, and changes none of its tensors.
/// OD-4: it is called on one thread at a time: on the driver's row, once for each microbatch, also
///       if its stage is recomputed; and on the caller's thread whenever the module is captured.
/// OD-5: the program keeps the code: it must not refer to what ends with forward.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/driver_code.h"
#include "stagecraft/compiler/module/structured_call.h"
#include "stagecraft/compiler/native/native_code.h"

namespace stagecraft {

namespace internal {

/// Calls the operator, which runs `call`.
[[nodiscard]] DriverCode::Tensors call_on_driver(const std::string& name,
                                                 DriverCode::Call call,
                                                 const DriverCode::Tensors& values);

/// Returns the code that this thread calls by the operator. Requires: it calls one.
[[nodiscard]] std::shared_ptr<const DriverCode> driver_code_in_call();

template <class>
using OneTensor = at::Tensor;

template <class Code>
struct KeptCode {
  explicit KeptCode(Code c) : code(std::move(c)) {}
  std::mutex mutex;
  Code code;
};

}  // namespace internal

/// Runs `code` on tensors, and returns what it returns: a tensor, a std::vector of them, or a
/// tuple, pair, array or plain struct of them, all defined. `name`: for messages and drawings.
/// Errors: UsageArgument for an empty name and for results without gradient (OD-1); those of the
///         code, in the step, with rank, stage and microbatch.
template <class Code, class... T>
requires(std::convertible_to<const T&, at::Tensor>&&...) auto on_driver(const std::string& name,
                                                                        Code code,
                                                                        const T&... tensors) {
  static_assert(std::is_invocable_v<Code&, internal::OneTensor<T>...>,
                "sc::on_driver: the code does not take these tensors one by one");
  using Result = std::remove_cvref_t<std::invoke_result_t<Code&, internal::OneTensor<T>...>>;
  static_assert(internal::NativeResult<Result>,
                "sc::on_driver: the code must return a tensor, a std::vector of tensors, or a "
                "tuple, pair, array or plain struct of them");
  const auto kept = std::make_shared<internal::KeptCode<Code>>(std::move(code));
  auto call = [kept](const DriverCode::Tensors& values) {
    const std::scoped_lock one_at_a_time(kept->mutex);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return internal::TakeResults{}(std::invoke(kept->code, at::Tensor(values[I])...));
    }
    (std::index_sequence_for<T...>());
  };
  TensorReader reader(internal::call_on_driver(name, std::move(call), {at::Tensor(tensors)...}));
  Result result = internal::made_of<Result>(reader);
  reader.require_done();
  return result;
}

}  // namespace stagecraft
