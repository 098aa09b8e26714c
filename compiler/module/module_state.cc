#include "stagecraft/compiler/module/module_state.h"

#include <map>

#include <fmt/format.h>
#include <torch/nn/module.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

void append_submodules(const torch::nn::Module& module,
                       const std::string& path,
                       std::vector<std::string>& paths) {
  for (const auto& child : module.named_children()) {
    if (child.value()->is_serializable()) {
      paths.push_back(path + child.key());
      append_submodules(*child.value(), paths.back() + ".", paths);
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

std::vector<std::string> submodules_of(const torch::nn::Module& module) {
  std::vector<std::string> paths;
  append_submodules(module, "", paths);
  return paths;
}

void refuse_no_module() {
  throw Error(Errc::UsageArgument,
              "the module is a null pointer or an empty module holder; construct the module first "
              "(torch::nn::Linear(nullptr) holds none), and pass none that was moved from");
}

std::string pattern_below(const torch::nn::Module& whole, const torch::nn::Module& part) {
  std::string path;
  for (const auto& module : whole.named_modules("", /*include_self=*/false)) {
    if (module.value().get() == &part) {
      path = module.key() + ".";
      break;
    }
  }
  if (path.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the module {} is not inside {}: register it there "
                            "(register_module), and pass it as it is registered",
                            part.name(),
                            whole.name()));
  }
  bool any = false;
  for (const StateName& parameter : state_names_of(state_of_owner(whole).parameters, {})) {
    if (!parameter.name.starts_with(path)) {
      continue;
    }
    any = true;
    if (!parameter.first.starts_with(path)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} is tied to {}, and a program knows it by that name: select "
                              "parameters by names",
                              parameter.name,
                              parameter.first));
    }
  }
  if (!any) {
    throw Error(Errc::UsageArgument,
                fmt::format("the module {} has no parameters", path.substr(0, path.size() - 1)));
  }
  return path + "*";
}

}  // namespace internal
}  // namespace stagecraft
