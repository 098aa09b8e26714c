#include "stagecraft/tools/train/work/asked_weights.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft::tools {
namespace {

/// Says how the weights of a checkpoint differ from those of the model: by the first other shape.
std::string difference_text(const std::vector<NamedTensor>& found,
                            const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& wanted : parameters) {
    const auto same = std::ranges::find(found, wanted.name, &NamedTensor::name);
    if (same != found.end() && same->tensor.sizes() != wanted.tensor.sizes()) {
      return fmt::format("its parameter {} has the shape [{}], that of this model [{}]",
                         wanted.name,
                         fmt::join(same->tensor.sizes(), ", "),
                         fmt::join(wanted.tensor.sizes(), ", "));
    }
  }
  return "it has other parameters or buffers";
}

void load_checkpoint(const WorkRequest& request,
                     const std::vector<NamedTensor>& parameters,
                     const std::vector<NamedTensor>& buffers) {
  const std::string& path = *request.checkpoint;
  const std::vector<NamedTensor> found = read_module_state(CheckpointReader(path));
  try {
    load_weights(path, found, parameters, buffers);
  } catch (const Error&) {  // which lists all tensors, though one option changes most of them
    throw Error(Errc::CheckpointMismatch,
                fmt::format("{}: the checkpoint is of another model: {}; give the options of the "
                            "run that saved it: {}",
                            path,
                            difference_text(found, parameters),
                            options_of_model(request.model)));
  }
}

}  // namespace

std::string options_of_model(const ModelChoice& model) {
  return model.file ? "--model-file"
                    : "--model, its sizes, its data (the distinct bytes of --text are the "
                      "vocabulary)";
}

void load_asked_weights(const WorkRequest& request,
                        const std::vector<NamedTensor>& parameters,
                        const std::vector<NamedTensor>& buffers) {
  if (request.checkpoint) {
    load_checkpoint(request, parameters, buffers);
  } else if (request.weights) {
    load_weights(*request.weights, read_weights(*request.weights), parameters, buffers);
  }
}

}  // namespace stagecraft::tools
