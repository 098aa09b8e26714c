/// ModuleState lists the parameters and buffers that a LibTorch module has registered, by name.
///
/// compile gathers it and keeps the names with the program; code that writes trained weights back
/// into a module uses it too. It knows modules as templates and forward declarations only: the
/// caller includes LibTorch's module headers.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/call.h"
#include "stagecraft/compiler/module/named_tensor.h"

namespace torch::nn {
class Module;
}

namespace stagecraft {

/// StateName is one name of a parameter or buffer. A tensor with several names has one entry for
/// each.
struct StateName {
  std::string name;
  std::string first;  ///< the first name of the same tensor, under which the program knows it
  bool buffer = false;
};

/// ModuleState lists ties under each of their names.
struct ModuleState {
  std::vector<NamedTensor> parameters, buffers;
};

/// Returns the names of parameters, then of buffers, in the module's order.
[[nodiscard]] std::vector<StateName> state_names_of(const std::vector<NamedTensor>& parameters,
                                                    const std::vector<NamedTensor>& buffers);

namespace internal {

/// Returns the paths of all modules below this one that LibTorch saves with it.
[[nodiscard]] std::vector<std::string> submodules_of(const torch::nn::Module& module);

/// Throws UsageArgument.
[[noreturn]] void refuse_no_module();

/// Does the part of below that is not a template.
[[nodiscard]] std::string pattern_below(const torch::nn::Module& whole,
                                        const torch::nn::Module& part);

template <class T>
concept Module = requires(const T& module) {
  module.named_parameters().begin()->key();
  module.named_buffers().begin()->value();
};

/// Returns the object that has the parameters: `module` itself, or AnyModule's module.
template <class Callee>
decltype(auto) owner_of(Callee& module) {
  if constexpr (Holder<std::remove_const_t<Callee>>) {
    return *module.ptr();
  } else {
    return (module);
  }
}

/// Returns the tensors of a module in its present state.
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

/// Returns the module of a module, a holder of one, or a pointer to one. Errors: UsageArgument if
/// it is empty.
template <class Given>
decltype(auto) module_of(Given& given) {
  using Owner = std::remove_cvref_t<decltype(owner_of(callee_of(given)))>;
  static_assert(Module<Owner>,
                "expected a torch::nn::Module, a holder of one or a pointer to one: this has no "
                "named_parameters");
  if (holds_nothing(given)) {
    refuse_no_module();
  }
  return owner_of(callee_of(given));
}

/// Returns its state. Errors: likewise.
template <class Given>
ModuleState state_of_module(Given& given) {
  return state_of_owner(module_of(given));
}

}  // namespace internal

/// Returns the pattern that matches the names of all parameters of `part`, a module inside `whole`,
/// and no others: "encoder.*". It is for ParameterGroup::match:
///
///   options.groups = {{.match = sc::below(net, net->encoder), .frozen = true}};
///
/// Errors: UsageArgument if `part` is not inside `whole` or has no parameters, and if a program
/// knows one of them by a name outside of `part`, to which it is tied.
template <class Whole, class Part>
[[nodiscard]] std::string below(Whole&& whole, Part&& part) {
  return internal::pattern_below(internal::module_of(whole), internal::module_of(part));
}

}  // namespace stagecraft
