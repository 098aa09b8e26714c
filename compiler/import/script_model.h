/// script_model: a TorchScript file as a ModelFile.
///
/// LibTorch loads it and runs it, unoptimized, operator after operator; so the file is trusted as a
/// program is. What loading takes apart is put together again: tensors that were one (tied weights,
/// the lists of weights that RNN modules keep) are one. A buffer that the program replaces is
/// written instead, so that it stays the buffer.
#pragma once

#include <string>

#include "stagecraft/compiler/import/model_file.h"

namespace stagecraft {

/// Errors: as load_model.
[[nodiscard]] ModelFile script_model(const std::string& path);

}  // namespace stagecraft
