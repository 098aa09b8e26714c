/// unpacked_inputs returns the inputs of a model of tests/data/models as a folder of .npy files,
/// the form that a training takes.
///
/// Most models keep their inputs in one inputs.safetensors, which has a tensor for each file. It is
/// unpacked once for a process, into a folder that is removed at its end.
#pragma once

#include <filesystem>
#include <string>

namespace stagecraft::testing {

/// Returns `model` itself if it has .npy files. `model`: the folder of the model.
[[nodiscard]] std::string unpacked_inputs(const std::filesystem::path& model);

}  // namespace stagecraft::testing
