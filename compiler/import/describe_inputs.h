/// describe_inputs: what a model's inputs look like, as the data for it say.
///
/// A TorchScript file does not say it, and an exported one may leave sizes open: those that train a
/// file know them from their data. Then MF-2 holds for both kinds of file.
#pragma once

#include "stagecraft/compiler/import/model_file.h"
#include "stagecraft/compiler/tensor_files/microbatch_files.h"

namespace stagecraft {

/// Has every input of `model` known, with type and shape of the argument in its place.
/// Errors: UsageFile for another number of arguments than the model has inputs, and for all that
///         are of another type or shape than the model's file says, each with its file.
void describe_inputs(ModelFile& model, const MicrobatchFiles& data);

}  // namespace stagecraft
