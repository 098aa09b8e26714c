/// KeptModule keeps a module for the program that was compiled from it, so that the program can run
/// the module again when a microbatch has another shape.
///
/// compile makes it.
/// KM-1: a module that a shared_ptr owns (as in every holder of LibTorch) lives as long as the
///       program. Any other module must live as long as steps bring new shapes. Its parameters show
///       whether it was destroyed, unless other code keeps all of them.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "stagecraft/compiler/module/named_tensor.h"

namespace torch::nn {
class Module;
}

namespace stagecraft::internal {

class KeptModule {
 public:
  /// `owner` is null if no owner is known.
  KeptModule(std::shared_ptr<const void> owner, const std::vector<NamedTensor>& parameters);

  /// Checks the module. Errors: CompileShape if it no longer exists.
  void require_alive() const;

 private:
  std::shared_ptr<const void> owner_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> parameters_;
};

/// Returns whether the module and each module below it is in training mode, from the root on.
[[nodiscard]] std::vector<bool> modes_of(const torch::nn::Module& module);
/// Sets these modes. Requires: as many as modes_of returns.
void set_modes(torch::nn::Module& module, const std::vector<bool>& modes);

/// Returns the owner of `module`: the smart pointer or holder that was given, or the shared_ptr
/// that the module itself knows; null if there is none.
template <class Given, class Owner>
[[nodiscard]] std::shared_ptr<const void> owner_of_life(const Given& given, const Owner& module) {
  if constexpr (std::is_convertible_v<const Given&, std::shared_ptr<const void>>) {
    return given;
  } else if constexpr (requires { module.weak_from_this().lock(); }) {
    return module.weak_from_this().lock();
  } else {
    return nullptr;
  }
}

}  // namespace stagecraft::internal
