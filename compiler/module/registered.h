/// registered prepares the tensors that a module has registered for compile, and refuses those that
/// no program can have.
#pragma once

#include <vector>

#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft::internal {

/// Returns each tensor once. A tensor registered under several names is one parameter, known by its
/// first name.
[[nodiscard]] std::vector<NamedTensor> without_aliases(const std::vector<NamedTensor>& tensors);

/// Checks the tensors.
/// Requires: both are without aliases.
/// Errors: UsageArgument, naming the tensors, for one that no worker can compute with, and for two
/// that share memory: they would become two copies, trained separately.
void check_registered(const std::vector<NamedTensor>& parameters,
                      const std::vector<NamedTensor>& buffers);

}  // namespace stagecraft::internal
