#include "stagecraft/compiler/data/data_request.h"

namespace stagecraft {

std::optional<std::int64_t> stated_microbatch_size(const std::vector<ModelTensor>& inputs) {
  for (const ModelTensor& input : inputs) {
    if (input.known && !input.sizes.empty() && input.sizes.front() > 0) {
      return input.sizes.front();
    }
  }
  return std::nullopt;
}

}  // namespace stagecraft
