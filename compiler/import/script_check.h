/// script_check compares the operations of a TorchScript file with the list of allowed operators
/// before any of them runs.
///
/// The file is still a program that LibTorch reads. These checks keep its operators away from
/// files, memory and the process. They do not make LibTorch's own reader safe.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/import/archive/unsupported.h"

namespace torch::jit {
struct Module;
}  // namespace torch::jit

namespace stagecraft {

/// Checks the file's code.
/// Requires: the file at `path` is a ZIP archive.
/// Errors: UsageFile for code that LibTorch would run while it loads the file.
void refuse_code_at_load(const std::string& path);

/// Returns the calls of the loaded module's functions that are not allowed, each once.
[[nodiscard]] std::vector<Unsupported> script_faults(const torch::jit::Module& module);

}  // namespace stagecraft
