/// script_model reads a TorchScript file as a ModelFile.
///
/// LibTorch loads the file and runs it, unoptimized, operator by operator. So the file must be
/// trusted like a program. Loading splits tensors that were one (tied weights, the lists of weights
/// that RNN modules keep); script_model makes them one again. If the program replaces a buffer, the
/// buffer is written instead, so that it stays the same tensor.
#pragma once

#include <string>

#include "stagecraft/compiler/import/model_file.h"

namespace stagecraft {

/// Reads the file. Errors: those of load_model.
[[nodiscard]] ModelFile script_model(const std::string& path);

}  // namespace stagecraft
