/// Files of whole modules, as LibTorch's own torch::save(module, path) writes them.
///
/// Plain LibTorch reads them with torch::load(module, path), PyTorch with
/// torch.jit.load(path).state_dict(); both names of a tie are one tensor there. Used by
/// Trainer::save_module and load_module, and by programs.
/// MO-1: a file appears whole or not at all, and a module takes over all of a file or nothing.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/module_state.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft {

/// `submodules`: of the module, where they are known. Without them LibTorch misses those that have
/// no tensor below them (ReLU); PyTorch does not.
/// Errors: UsageFile when `path` cannot be written; UsageArgument for names that no module has.
void write_module(const std::string& path,
                  const ModuleState& state,
                  const std::vector<std::string>& submodules = {});

/// Reads what torch::save wrote of a module, or torch.jit.save: its tensors, by name.
/// Errors: UsageFile for what cannot be read, or is no such file.
[[nodiscard]] ModuleState read_module(const std::string& path);

/// torch::save(module, path), whole or not at all. `module`: one, a holder, or a pointer to one.
/// Errors: those of write_module.
template <class Given>
void save_module(const std::string& path, Given&& module) {
  const ModuleState state = internal::state_of_module(module);
  write_module(
      path, state, internal::submodules_of(internal::owner_of(internal::callee_of(module))));
}

/// torch::load(module, path) that changes nothing where it cannot load all: values are copied into
/// the tensors that the module has, so ties and what others hold of them stay.
/// Errors: those of read_module; UsageFile with every tensor that is missing, unknown, or of
///         another shape or type.
template <class Given>
void load_module(const std::string& path, Given&& module) {
  const ModuleState to = internal::state_of_module(module);
  load_state(path, read_module(path), to);
}

}  // namespace stagecraft
