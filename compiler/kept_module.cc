#include "stagecraft/compiler/kept_module.h"

#include <algorithm>
#include <utility>

#include <torch/nn/module.h>

#include "stagecraft/base/error.h"

namespace stagecraft::internal {
namespace {

/// Module::modules() needs an owner, which a module need not have.
void append_modes(const torch::nn::Module& module, std::vector<bool>& modes) {
  modes.push_back(module.is_training());
  for (const auto& child : module.children()) {
    append_modes(*child, modes);
  }
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
    throw Error(Errc::CompileShape,
                "this batch has a shape that the program was not captured for, and the module it "
                "was compiled from is gone: let the module live as long as steps bring new shapes "
                "(in a std::shared_ptr or a holder the program keeps it), or pass batches of the "
                "shape that was compiled");
  }
}

std::vector<bool> modes_of(const torch::nn::Module& module) {
  std::vector<bool> modes;
  append_modes(module, modes);
  return modes;
}

}  // namespace stagecraft::internal
