#include "stagecraft/compiler/module/kept_module.h"

#include <algorithm>
#include <utility>

#include <torch/nn/module.h>

#include "stagecraft/base/error.h"

namespace stagecraft::internal {
namespace {

/// Recurses by hand because Module::modules() needs an owner, which a module need not have.
void append_modes(const torch::nn::Module& module, std::vector<bool>& modes) {
  modes.push_back(module.is_training());
  for (const auto& child : module.children()) {
    append_modes(*child, modes);
  }
}

/// Sets the modes and returns those left. A module's train() also sets all modules below it, which
/// are set later.
std::vector<bool>::const_iterator take_modes(torch::nn::Module& module,
                                             std::vector<bool>::const_iterator next) {
  module.train(*next++);
  for (const auto& child : module.children()) {
    next = take_modes(*child, next);
  }
  return next;
}

}  // namespace

KeptModule::KeptModule(std::shared_ptr<const void> owner,
                       const std::vector<NamedTensor>& parameters)
    : owner_(std::move(owner)) {
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.defined()) {
      parameters_.emplace_back(parameter.tensor.getIntrusivePtr());
    }
  }
}

void KeptModule::require_alive() const {
  if (owner_ == nullptr &&
      std::ranges::any_of(parameters_, [](const auto& parameter) { return parameter.expired(); })) {
    throw Error(
        Errc::CompileShape,
        "the program must capture its module again, for a batch of another shape or for an "
        "evaluation, but the module it was compiled from is gone: let the module live while "
        "there are new shapes or evaluations (the program keeps a module that is in a "
        "std::shared_ptr or a holder), or pass batches of the shape that was compiled");
  }
}

std::vector<bool> modes_of(const torch::nn::Module& module) {
  std::vector<bool> modes;
  append_modes(module, modes);
  return modes;
}

void set_modes(torch::nn::Module& module, const std::vector<bool>& modes) {
  (void)take_modes(module, modes.begin());
}

}  // namespace stagecraft::internal
