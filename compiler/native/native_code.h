/// NativeCode is a module of a native stage (native_stage.h), without its type: its tensors, its
/// modes and its forward.
///
/// native_stage makes one of the module in the user's program for each call, and each rank has one
/// of its own, made by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
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
  std::function<std::vector<bool>()> modes;  ///< modes_of the module
  std::function<void(const std::vector<bool>&)> set_modes;

  [[nodiscard]] bool trains() const { return modes().front(); }
  /// Sets all modes, unless the module itself is in this one.
  void train(bool training) const;
};

/// Returns the results of a forward. They are joined to autograd by one node, from which gradients
/// flow to `values` and `parameters`. The node's backward runs that of the module. `parameters`:
/// one for each of the code's, in whose place it stands.
/// Errors: UsageArgument if the code writes one of `values` or a parameter; those of the forward.
[[nodiscard]] NativeCode::Tensors run_native(const std::string& name,
                                             const NativeCode& code,
                                             const NativeCode::Tensors& values,
                                             const NativeCode::Tensors& parameters);

/// Makes a rank's module. Errors: those of the user's code.
using NativeMaker = std::function<NativeCode()>;

/// Registers a maker. Errors: UsageArgument if the name is empty or taken.
void register_native_maker(const std::string& name, NativeMaker make);

/// Makes the module of this name. The default random generator is afterwards as before.
/// Errors: UsageArgument for a name that this program has not registered; those of the maker.
[[nodiscard]] NativeCode make_native(const std::string& name);

/// Checks that the name is registered. Errors: UsageArgument.
void require_native(const std::string& name);

namespace internal {

struct TakeResults {
  using Result = NativeCode::Tensors;
  template <MadeOfTensors T>
  Result operator()(const T& results) const {
    return tensors_in(results);
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
      .modes = [&base] { return modes_of(base); },
      .set_modes = [&base](const std::vector<bool>& modes) { internal::set_modes(base, modes); }};
}

}  // namespace internal
}  // namespace stagecraft
