/// Weights by name in files: one .safetensors file, or a folder with one .npy file per tensor,
/// named for it ("layers.0.weight.npy"). Which of them a path means, its end says.
///
/// WE-1: what is taken over is judged whole first: a complaint tells of every name, and has changed
///       nothing.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/module_state.h"
#include "stagecraft/compiler/named_tensor.h"

namespace stagecraft {

/// A name ending in .safetensors; any other is a folder.
[[nodiscard]] bool is_weights_file(const std::string& path);

/// Errors: those of read_safetensors and read_npy; UsageFile for a folder that is not there or has
///         no .npy file.
[[nodiscard]] std::vector<NamedTensor> read_weights(const std::string& path);

/// Makes the folder where there is none. Each file appears whole; those of a folder one after the
/// other.
/// Errors: those of write_safetensors and write_npy; UsageFile, before anything is written, for a
///         name that no file can have, and for a folder with .npy files of other names, which would
///         be taken for weights of this model.
void write_weights(const std::string& path, const std::vector<NamedTensor>& tensors);

/// Errors: as write_weights, as far as can be told without the tensors; nothing is written.
void check_weights_place(const std::string& path, const std::vector<std::string>& names);

/// Copies `found` into the tensors of `parameters` and `buffers`, which have ties under each of
/// their names. Parameters must all be there, under one of their names; buffers need not be. From a
/// folder a bfloat16 tensor comes as float32 (npy.h) and is rounded. Keeps WE-1. `path`: for the
/// message.
/// Errors: UsageFile with everything that is missing, unknown, of another shape or type, or
///         different under two names of one tensor.
void load_weights(const std::string& path,
                  const std::vector<NamedTensor>& found,
                  const std::vector<NamedTensor>& parameters,
                  const std::vector<NamedTensor>& buffers);

/// Copies `found` into the tensors of `to`, which must all be there. Of a tie one name is enough;
/// `from` says in the message where it is from. Keeps WE-1. Errors: as load_weights.
void load_state(const std::string& from, const ModuleState& found, const ModuleState& to);

}  // namespace stagecraft
