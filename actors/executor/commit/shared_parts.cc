#include "stagecraft/actors/executor/commit/shared_parts.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>

namespace stagecraft {

SharedParts::SharedParts(Group members, StageRuntime& stage, std::size_t bucket)
    : members_(std::move(members)), stage_(stage), bucket_(bucket) {}

void SharedParts::start_norms(Collective& collective, const Sequence& step) {
  const at::Tensor squares = buckets().divided_squares(bucket_);
  if (squares.numel() > 0) {
    norms_ = collective.all_gather(members_, step, squares);
  }
}

void SharedParts::finish_norms(Deadline deadline) {
  if (const std::unique_ptr<PendingResult> norms = std::move(norms_)) {
    buckets().take_divided_squares(bucket_, norms->wait(deadline));
  }
}

/// Others read these weights until they have finished, and no rank votes in the next step before:
/// no update writes to them meanwhile.
void SharedParts::start_gather(Collective& collective, const Sequence& step, const SumTurn& turn) {
  const std::vector<at::Tensor> own = buckets().own_weights(bucket_);
  Sequence sequence = step;
  sequence.number += turn.round * static_cast<std::int32_t>(own.size());
  for (const at::Tensor& weights : own) {
    weights_.push_back(collective.all_gather(members_, sequence, weights));
    ++sequence.number;
  }
}

void SharedParts::finish_gather(Deadline deadline) {
  const at::NoGradGuard no_grad;
  buckets().hold_weights(bucket_);
  const std::vector<at::Tensor>& whole = buckets().flat_weights(bucket_);
  for (std::size_t b = 0; b < weights_.size(); ++b) {
    weights_[b]->wait_into(deadline, whole[b]);
  }
  weights_.clear();
}

void SharedParts::release_weights() {
  buckets().release_weights(bucket_);
}

void SharedParts::drop() {
  for (const auto& one : weights_) {
    one->abandon();
  }
  weights_.clear();
  if (norms_ != nullptr) {
    norms_->abandon();
    norms_.reset();
  }
}

}  // namespace stagecraft
