#include "stagecraft/compiler/shapes/sample_rows.h"

namespace stagecraft {

std::int64_t sample_rows(const Batch& inputs) {
  for (const BatchTensor& input : inputs) {
    if (!input.replicated && input.tensor.defined() && input.tensor.dim() > 0) {
      return input.tensor.size(0);
    }
  }
  return 0;
}

}  // namespace stagecraft
