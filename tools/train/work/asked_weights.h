/// asked_weights gives a model the weights that its request names, before it is compiled.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/tools/train/work/work_request.h"

namespace stagecraft::tools {

/// Loads the weights, if the request names any. The tensors are those of the model, with ties under
/// each of their names.
/// Errors: those of read_weights and load_weights; for a checkpoint, those of CheckpointReader, and
///         CheckpointMismatch if it is of another model.
void load_asked_weights(const WorkRequest& request,
                        const std::vector<NamedTensor>& parameters,
                        const std::vector<NamedTensor>& buffers);

/// Returns which options make the model of a checkpoint, in the words of a command's user.
[[nodiscard]] std::string options_of_model(const ModelChoice& model);

}  // namespace stagecraft::tools
