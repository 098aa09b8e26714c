/// KeptModule: what a program keeps of the module it was compiled from, to run it again when a
/// microbatch has another shape.
///
/// Made by compile.
/// KM-1: a module that a shared_ptr owns (as in every holder of LibTorch) lives as long as the
///       program. Any other has to live as long as steps bring new shapes; one that is gone is told
///       by its parameters, unless somebody else keeps all of these.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include "stagecraft/compiler/named_tensor.h"

namespace torch::nn {
class Module;
}

namespace stagecraft::internal {

class KeptModule {
 public:
  /// `owner` may be null: nobody's, as far as can be told.
  KeptModule(std::shared_ptr<const void> owner, const std::vector<NamedTensor>& parameters);

  /// Errors: CompileShape when the module is gone.
  void require_alive() const;

 private:
  std::shared_ptr<const void> owner_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> parameters_;
};

/// Whether the module and each below it trains, from the root on.
[[nodiscard]] std::vector<bool> modes_of(const torch::nn::Module& module);
/// Makes it so. Requires: as many as modes_of returns.
void set_modes(torch::nn::Module& module, const std::vector<bool>& modes);

/// Who owns `module`: a smart pointer or holder that was given, or whoever made it shared.
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
