/// describe_inputs gets the shapes and types of a model's inputs from its training data.
///
/// A TorchScript file does not contain them, and an exported one may leave sizes open. The training
/// data define them. After that MF-2 holds for both kinds of file.
#pragma once

#include "stagecraft/compiler/data/model_data.h"
#include "stagecraft/compiler/import/model_file.h"

namespace stagecraft {

/// Gives every input of `model` the type and shape of the argument in its place.
/// Errors: UsageFile if the number of arguments differs from the number of the model's inputs, and
///         for every argument whose type or shape differs from the model's file, each with its
///         file.
void describe_inputs(ModelFile& model, const ModelData& data);

}  // namespace stagecraft
