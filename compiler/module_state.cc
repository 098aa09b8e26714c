#include "stagecraft/compiler/module_state.h"

#include <map>

#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>

#include "stagecraft/base/error.h"

namespace stagecraft::internal {
struct RegisteredNames;
}

/// What is registered without a tensor has a place in LibTorch's files, and no name in what a
/// module tells of itself. Friends see it: this one is made of a type of ours, so that it can be no
/// other's.
template <>
class torch::nn::Cloneable<stagecraft::internal::RegisteredNames> {
 public:
  static const auto& parameters_of(const Module& module) { return module.parameters_; }
  static const auto& buffers_of(const Module& module) { return module.buffers_; }
};

namespace stagecraft {
namespace {

using Access = torch::nn::Cloneable<internal::RegisteredNames>;

void append_layout(const torch::nn::Module& module, const std::string& path, ModuleLayout& layout) {
  const auto add_empty = [&](const auto& registered, std::vector<std::string>& names) {
    for (const auto& item : registered) {
      if (!item.value().defined()) {
        names.push_back(path + item.key());
      }
    }
  };
  add_empty(Access::parameters_of(module), layout.empty_parameters);
  add_empty(Access::buffers_of(module), layout.empty_buffers);
  for (const auto& child : module.named_children()) {
    if (child.value()->is_serializable()) {
      layout.modules.push_back(path + child.key());
      append_layout(*child.value(), layout.modules.back() + ".", layout);
    }
  }
}

void append_names(const std::vector<NamedTensor>& tensors,
                  bool buffer,
                  std::vector<StateName>& names) {
  std::map<const void*, std::string> first;
  for (const NamedTensor& t : tensors) {
    if (t.tensor.defined()) {
      const auto known = first.emplace(t.tensor.unsafeGetTensorImpl(), t.name).first;
      names.push_back({.name = t.name, .first = known->second, .buffer = buffer});
    }
  }
}

}  // namespace

std::vector<StateName> state_names_of(const std::vector<NamedTensor>& parameters,
                                      const std::vector<NamedTensor>& buffers) {
  std::vector<StateName> names;
  append_names(parameters, false, names);
  append_names(buffers, true, names);
  return names;
}

namespace internal {

ModuleLayout layout_of(const torch::nn::Module& module) {
  ModuleLayout layout;
  append_layout(module, "", layout);
  return layout;
}

void refuse_no_module() {
  throw Error(Errc::UsageArgument,
              "the module is a null pointer or an empty module holder; construct the module first "
              "(torch::nn::Linear(nullptr) holds none), and pass none that was moved "
              "from");
}

}  // namespace internal
}  // namespace stagecraft
