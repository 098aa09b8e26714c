/// script_check: what a TorchScript file would have LibTorch do, held against the list of allowed
/// operators before any of it runs.
///
/// The file stays a program that LibTorch reads: these checks keep its operators from files, memory
/// and the process. They do not make LibTorch's own reader safe.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/import/unsupported.h"

namespace torch::jit {
struct Module;
}  // namespace torch::jit

namespace stagecraft {

/// Requires: the file at `path` is a ZIP archive.
/// Errors: UsageFile for code that LibTorch would run while it loads the file.
void refuse_code_at_load(const std::string& path);

/// Returns what the functions of the loaded module may not call, each once.
[[nodiscard]] std::vector<Unsupported> script_faults(const torch::jit::Module& module);

}  // namespace stagecraft
