/// native_stage is a stage whose module stays ordinary C++: it is not captured, but runs on the
/// stage's worker as it was written, with loops and decisions that depend on values, and kernels of
/// its own.
///
///   sc::register_native_stage("refine", [] { return std::make_shared<Refine>(64); });
///   ...                                                // first in main() of driver and workers
///   h = sc::native_stage("refine", refine, h);         // in forward; refine is a submodule
///
/// Each rank that has the stage makes a module of its own by the registered maker; its parameters
/// and buffers are then those of the program. So optimizers, checkpoints, copies and mirrors see
/// no difference. A worker process must run a program that registers the name: usually the driver's
/// own.
///
/// NV-1: the module's backward runs once for each microbatch, also if a schedule splits backwards:
///       all of it then runs in the input half. A forward runs once more if it is recomputed.
/// NV-2: results have in every microbatch the number, shapes and types that they had at capture.
///       No gradient flows through a result that needed none there.
/// NV-3: it may read values, but draws no random numbers: capture refuses those that it sees.
/// NV-4: it changes neither its arguments nor its parameters, and keeps what outlives a microbatch
///       in its buffers, which it writes in place. All its buffers count as written.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/call.h"
#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/compiler/module/structured_call.h"
#include "stagecraft/compiler/native/native_code.h"

namespace stagecraft {

namespace internal {

/// Calls the operator, which runs `code`.
[[nodiscard]] NativeCode::Tensors call_native(const std::string& name,
                                              const NativeCode& code,
                                              const NativeCode::Tensors& values);

template <class>
using AnyTensor = at::Tensor&;

/// Throws UsageArgument: the maker made nothing, or a module that others have too.
[[noreturn]] void refuse_made(const std::string& name, bool anything);

}  // namespace internal

/// Registers a native stage. `make` returns a shared_ptr to a new module like the one in the user's
/// program, each time; its weights do not matter. Call it in main, before sc::worker_main() and
/// before the module is compiled. Thread: any; ranks call `make` on their threads, one at a time.
/// Errors: UsageArgument if the name is empty or taken.
template <class Make>
requires requires(Make& make) {
  make().use_count();
}
void register_native_stage(const std::string& name, Make make) {
  register_native_maker(name, [name, make = std::move(make)]() mutable {
    auto module = make();
    if (module.use_count() != 1) {
      internal::refuse_made(name, module != nullptr);
    }
    return internal::native_code(*module, module);
  });
}

/// Runs `module` on tensors as the stage `name`, and returns what its forward returns: a tensor, a
/// std::vector of them, or a tuple, pair, array or plain struct of them, all defined.
/// Errors: UsageArgument for an unregistered name; those of stage() and of the forward.
template <class Given, class... T>
requires(std::convertible_to<const T&, at::Tensor>&&...) auto native_stage(const std::string& name,
                                                                           Given&& module,
                                                                           const T&... tensors) {
  if (internal::holds_nothing(module)) {
    internal::refuse_nothing_marked(kStageTag, name);
  }
  auto& callee = internal::callee_of(module);
  using Callee = std::remove_reference_t<decltype(callee)>;
  static_assert(internal::Callable<Callee, internal::AnyTensor<T>...>,
                "sc::native_stage: the module's forward does not take these tensors one by one");
  using Result = std::remove_cvref_t<decltype(internal::call(
      callee, std::declval<internal::AnyTensor<T>>()...))>;
  static_assert(internal::NativeResult<Result>,
                "sc::native_stage: the module's forward must return a tensor, a std::vector of "
                "tensors, or a tuple, pair, array or plain struct of them");
  const AnnotationScope scope(kStageTag, name);
  NativeCode::Tensors made =
      internal::call_native(name, internal::native_code(callee, nullptr), {at::Tensor(tensors)...});
  TensorReader reader(std::move(made));
  Result result = internal::made_of<Result>(reader);
  reader.require_done();
  return result;
}

}  // namespace stagecraft
