#include "stagecraft/actors/executor/run/accumulation.h"

namespace stagecraft {

void Accumulation::keep(const Snapshot& before, bool updates) {
  if (updates) {
    before_update_.reset();
    batches_ = 0;
    return;
  }
  if (!before_update_) {
    before_update_.emplace(before);
  }
  ++batches_;
}

void Accumulation::drop() {
  if (before_update_) {
    before_update_->restore();
  }
  before_update_.reset();
  batches_ = 0;
}

at::Tensor Accumulation::committed(const at::Tensor& living) const {
  return before_update_ ? before_update_->as_it_was(living) : living;
}

}  // namespace stagecraft
