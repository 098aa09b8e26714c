/// ModuleState: what a LibTorch module has registered, by the names it gives.
///
/// Gathered by compile, which keeps the names with the program, and by whoever writes
/// trained weights back into a module. Knows modules as templates and forward declarations only:
/// LibTorch's module headers are the caller's.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/call.h"
#include "stagecraft/compiler/named_tensor.h"

namespace torch::nn {
class Module;
}

namespace stagecraft {

/// One name of a parameter or buffer. What has several comes once for each.
struct StateName {
  std::string name;
  std::string first;  ///< the first name of the same tensor, which the program knows it by
  bool buffer = false;
};

/// Ties under each of their names.
struct ModuleState {
  std::vector<NamedTensor> parameters, buffers;
};

/// Parameters, then buffers, in the module's order.
[[nodiscard]] std::vector<StateName> state_names_of(const std::vector<NamedTensor>& parameters,
                                                    const std::vector<NamedTensor>& buffers);

namespace internal {

/// Paths of all modules below this one that LibTorch saves with it.
[[nodiscard]] std::vector<std::string> submodules_of(const torch::nn::Module& module);

/// Errors: UsageArgument, always.
[[noreturn]] void refuse_no_module();

template <class T>
concept Module = requires(const T& module) {
  module.named_parameters().begin()->key();
  module.named_buffers().begin()->value();
};

/// What has the parameters: `module` itself, but for AnyModule.
template <class Callee>
decltype(auto) owner_of(Callee& module) {
  if constexpr (Holder<std::remove_const_t<Callee>>) {
    return *module.ptr();
  } else {
    return (module);
  }
}

/// The tensors of a module, as it is by now.
template <class Owner>
ModuleState state_of_owner(const Owner& owner) {
  ModuleState state;
  for (const auto& item : owner.named_parameters()) {
    state.parameters.push_back({item.key(), item.value()});
  }
  for (const auto& item : owner.named_buffers()) {
    state.buffers.push_back({item.key(), item.value()});
  }
  return state;
}

/// Of a module, a holder of one, or a pointer to one. Errors: UsageArgument for one that is empty.
template <class Given>
ModuleState state_of_module(Given& given) {
  using Owner = std::remove_cvref_t<decltype(owner_of(callee_of(given)))>;
  static_assert(Module<Owner>,
                "expected a torch::nn::Module, a holder of one or a pointer to one: this has no "
                "named_parameters");
  if (holds_nothing(given)) {
    refuse_no_module();
  }
  return state_of_owner(owner_of(callee_of(given)));
}

}  // namespace internal
}  // namespace stagecraft
