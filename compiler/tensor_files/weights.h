/// weights reads and writes weights by name in files: one .safetensors file, or a folder with one
/// .npy file per tensor, named after it ("layers.0.weight.npy"). The end of the path decides
/// between them.
///
/// WE-1: weights are checked completely before any is taken over. An error names every wrong
///       tensor, and nothing has changed.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/module/module_state.h"
#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft {

/// Returns true for a name that ends in .safetensors; any other name is a folder.
[[nodiscard]] bool is_weights_file(const std::string& path);

/// Reads the weights.
/// Errors: those of read_safetensors and read_npy; UsageFile for a folder that does not exist or
/// has no .npy file.
[[nodiscard]] std::vector<NamedTensor> read_weights(const std::string& path);

/// Makes the folder if there is none. Each file appears whole; the files of a folder appear one
/// after the other.
/// Errors: those of write_safetensors and write_npy; UsageFile, before anything is written, for a
///         name that no file can have, and for a folder with .npy files of other names, which would
///         be taken for weights of this model.
void write_weights(const std::string& path, const std::vector<NamedTensor>& tensors);

/// Checks the place without writing anything. Errors: those of write_weights that do not depend on
/// the tensors.
void check_weights_place(const std::string& path, const std::vector<std::string>& names);

/// Copies `found` into the tensors of `parameters` and `buffers`, which have ties under each of
/// their names. All parameters must be there, under one of their names; buffers may be missing. For
/// a tensor of a half type float32 is rounded: so folders store bfloat16 (npy.h), and averages of
/// masters are float32. What float16 would make infinite (beyond 65504) is refused. Keeps WE-1.
/// `path`: for the message.
/// Errors: UsageFile with everything that is missing, unknown, of another shape or type, too large,
///         or different under two names of one tensor.
void load_weights(const std::string& path,
                  const std::vector<NamedTensor>& found,
                  const std::vector<NamedTensor>& parameters,
                  const std::vector<NamedTensor>& buffers);

/// Copies `found` into the tensors of `to`, all of which must be there. One name of a tie is
/// enough. The message names `from` as the source. Keeps WE-1. Errors: as load_weights.
void load_state(const std::string& from, const ModuleState& found, const ModuleState& to);

}  // namespace stagecraft
