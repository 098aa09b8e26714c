/// module_file reads and writes files of whole modules, as LibTorch's own torch::save(module, path)
/// writes them.
///
/// Plain LibTorch reads them with torch::load(module, path), PyTorch with
/// torch.jit.load(path).state_dict(); both names of a tie are one tensor there.
/// Trainer::save_module and load_module use it, and so do programs.
/// MO-1: a file appears whole or not at all, and a module takes over all of a file or nothing.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/module/module_state.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft {

/// Writes the file. `submodules`: those of the module, if they are known. Without them LibTorch
/// does not find those that have no tensor below them (ReLU); PyTorch does.
/// Errors: UsageFile if `path` cannot be written; UsageArgument for names that no module can have.
void write_module(const std::string& path,
                  const ModuleState& state,
                  const std::vector<std::string>& submodules = {});

/// Reads the file of a module that torch::save or torch.jit.save wrote: its tensors, by name.
/// Errors: UsageFile for a file that cannot be read, or is no such file.
[[nodiscard]] ModuleState read_module(const std::string& path);

/// Works like torch::save(module, path), but writes all or nothing. `module`: a module, a holder,
/// or a pointer to one.
/// Errors: those of write_module.
template <class Given>
void save_module(const std::string& path, Given&& module) {
  const ModuleState state = internal::state_of_module(module);
  write_module(
      path, state, internal::submodules_of(internal::owner_of(internal::callee_of(module))));
}

/// Works like torch::load(module, path), but changes nothing if it cannot load all. It copies
/// values into the tensors that the module has, so ties and other handles stay valid.
/// Errors: those of read_module; UsageFile with every tensor that is missing, unknown, or of
///         another shape or type.
template <class Given>
void load_module(const std::string& path, Given&& module) {
  const ModuleState to = internal::state_of_module(module);
  load_state(path, read_module(path), to);
}

}  // namespace stagecraft
