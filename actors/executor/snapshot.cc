#include "stagecraft/actors/executor/snapshot.h"

#include <ATen/core/grad_mode.h>

namespace stagecraft {

Snapshot::Snapshot(const std::vector<StageRuntime>& stages) {
  for (const StageRuntime& stage : stages) {
    for (const at::Tensor& buffer : stage.state.buffers) {
      copies_.push_back({buffer, buffer.clone()});
    }
  }
}

void Snapshot::restore() const {
  const at::NoGradGuard no_grad;
  for (const Copy& copy : copies_) {
    copy.living.copy_(copy.kept);
  }
}

}  // namespace stagecraft
