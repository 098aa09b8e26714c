#include "stagecraft/actors/executor/stage/snapshot.h"

#include <ATen/core/grad_mode.h>

namespace stagecraft {

Snapshot::Snapshot(const std::vector<StageRuntime>& stages) {
  for (const StageRuntime& stage : stages) {
    for (std::size_t b = 0; b < stage.state.buffers.size(); ++b) {
      if (stage.program->buffers[b].written) {
        copies_.push_back({stage.state.buffers[b], stage.state.buffers[b].clone()});
      }
    }
  }
}

void Snapshot::restore() const {
  const at::NoGradGuard no_grad;
  for (const Copy& copy : copies_) {
    copy.living.copy_(copy.kept);
  }
}

at::Tensor Snapshot::as_it_was(const at::Tensor& living) const {
  for (const Copy& copy : copies_) {
    if (copy.living.is_same(living)) {
      return copy.kept;
    }
  }
  return living;
}

}  // namespace stagecraft
