/// NativeCode is a module of a native stage (native_stage.h), without its type: its tensors, its
/// modes and its forward.
///
/// native_stage makes one of the module in the user's program for each call, and each rank has one
/// of its own, made by name.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/kept_module.h"
#include "stagecraft/compiler/module/module_state.h"
#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/compiler/module/registered.h"
#include "stagecraft/compiler/module/spread.h"
#include "stagecraft/compiler/module/tensors_in.h"

namespace stagecraft {

/// Names the operator that stands for a native stage in graphs:
/// (name, values, parameters, buffers, training) -> results.
inline constexpr std::string_view kNativeOperator = "stagecraft::native_stage";

struct NativeCode {
  using Tensors = std::vector<at::Tensor>;

  std::vector<NamedTensor> parameters, buffers;  ///< the module's own, each once
  std::function<Tensors(const Tensors& values)> forward;
  std::function<bool()> trains;              ///< whether the module itself is in training mode
  std::function<std::vector<bool>()> modes;  ///< modes_of the module
  std::function<void(const std::vector<bool>&)> set_modes;

  /// Sets all modes, unless the module itself is in this one.
  void train(bool training) const;
};

/// Returns the code of a call without parameters, buffers and modes.
[[nodiscard]] NativeCode driver_code(
    std::function<NativeCode::Tensors(const NativeCode::Tensors&)> call);

/// Returns `native stage "a"`, for messages.
[[nodiscard]] std::string native_text(const std::string& name);

/// Returns the results of a forward. They are joined to autograd by one node, from which gradients
/// flow to `values` and `parameters`. The node's backward runs that of the module. `parameters`:
/// one for each of the code's, in whose place it stands. `what`: for messages, `native stage "a"`.
/// Errors: UsageArgument if the code writes one of `values` or a parameter; those of the forward.
[[nodiscard]] NativeCode::Tensors run_native(const std::string& what,
                                             const NativeCode& code,
                                             const NativeCode::Tensors& values,
                                             const NativeCode::Tensors& parameters);

/// Makes a rank's module. Errors: those of the user's code.
using NativeMaker = std::function<NativeCode()>;

/// Checks that nothing but the code of the module itself would be called with gradients.
/// Errors: UsageArgument for hooks on a parameter.
void require_no_hooks(const std::string& name, const NativeCode& code);

/// Registers a maker. Errors: UsageArgument if the name is empty or taken.
void register_native_maker(const std::string& name, NativeMaker make);

/// Makes the module of this name. What that draws is given back to the default random generator, so
/// it shows only to threads that draw meanwhile.
/// Errors: UsageArgument for a name that this program has not registered; those of the maker.
[[nodiscard]] NativeCode make_native(const std::string& name);

/// Returns why there is no maker of this name; empty if there is one.
[[nodiscard]] std::string missing_native(const std::string& name);

namespace internal {

/// Throws UsageArgument for undefined tensors among the results.
[[noreturn]] void refuse_undefined_result();

/// NativeResult matches what a native stage may return: tensors in a form that can be made of them
/// again.
template <class T>
consteval bool is_native_result() {
  if constexpr (std::same_as<T, at::Tensor> || std::same_as<T, std::vector<at::Tensor>>) {
    return true;
  } else if constexpr (TupleLike<T>) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::same_as<std::remove_cvref_t<std::tuple_element_t<I, T>>, at::Tensor> && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (PlainStruct<T>) {
    return is_native_result<decltype(members_of(std::declval<const T&>()))>();
  } else {
    return false;
  }
}
template <class T>
concept NativeResult = is_native_result<T>();

struct TakeResults {
  using Result = NativeCode::Tensors;
  template <NativeResult T>
  Result operator()(const T& results) const {
    Result list = tensors_in(results);
    std::size_t count = 1;
    if constexpr (std::same_as<T, Result>) {
      count = results.size();
    } else if constexpr (TupleLike<T>) {
      count = std::tuple_size_v<T>;
    } else if constexpr (!std::same_as<T, at::Tensor>) {
      count = member_count<T>();
    }
    if (list.size() != count) {
      refuse_undefined_result();
    }
    return list;
  }
};

/// `owner`: keeps the module; null if the caller does.
template <class Callee>
[[nodiscard]] NativeCode native_code(Callee& module, std::shared_ptr<const void> owner) {
  const ModuleState state = state_of_owner(owner_of(module));
  const auto forward = [&module, owner](const NativeCode::Tensors& values) {
    return internal::spread<TakeResults>(module, values);
  };
  auto& base = owner_of(module);
  return {
      .parameters = without_aliases(state.parameters),
      .buffers = without_aliases(state.buffers),
      .forward = forward,
      .trains = [&base] { return base.is_training(); },
      .modes = [&base] { return modes_of(base); },
      .set_modes = [&base](const std::vector<bool>& modes) { internal::set_modes(base, modes); }};
}

}  // namespace internal
}  // namespace stagecraft
