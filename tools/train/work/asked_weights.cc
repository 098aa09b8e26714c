#include "stagecraft/tools/train/work/asked_weights.h"

#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft::tools {

void load_asked_weights(const WorkRequest& request,
                        const std::vector<NamedTensor>& parameters,
                        const std::vector<NamedTensor>& buffers) {
  if (request.checkpoint) {
    const CheckpointReader reader(*request.checkpoint);
    load_weights(*request.checkpoint, read_module_state(reader), parameters, buffers);
  } else if (request.weights) {
    load_weights(*request.weights, read_weights(*request.weights), parameters, buffers);
  }
}

}  // namespace stagecraft::tools
