#include "stagecraft/actors/executor/commit/divided_weights.h"

#include <utility>

#include <ATen/core/grad_mode.h>

namespace stagecraft {

DividedWeights::DividedWeights(Group members, StageRuntime& stage, std::size_t bucket)
    : members_(std::move(members)), stage_(stage), bucket_(bucket) {}

/// Its number is below those of exchanges (kFirstExchange).
void DividedWeights::start_norms(Collective& collective, const Sequence& step) {
  const at::Tensor squares = stage_.buckets.divided_squares(bucket_);
  if (squares.numel() > 0) {
    norms_ = collective.all_gather(members_, step, squares);
  }
}

void DividedWeights::finish_norms(Deadline deadline) {
  if (const std::unique_ptr<PendingResult> norms = std::move(norms_)) {
    stage_.buckets.take_divided_squares(bucket_, norms->wait(deadline));
  }
}

void DividedWeights::start_gather(Collective& collective,
                                  const Sequence& step,
                                  const SumTurn& /*turn*/) {
  Sequence sequence = step;
  for (const at::Tensor& weights : stage_.buckets.own_weights(bucket_)) {
    weights_.push_back(collective.all_gather(members_, sequence, weights));
    ++sequence.number;
  }
}

void DividedWeights::finish_gather(Deadline deadline) {
  const at::NoGradGuard no_grad;
  stage_.buckets.hold_weights(bucket_);
  const std::vector<at::Tensor>& whole = stage_.buckets.flat_weights(bucket_);
  for (std::size_t p = 0; p < weights_.size(); ++p) {
    weights_[p]->wait_into(deadline, whole[p]);
  }
  weights_.clear();
}

void DividedWeights::release_weights() {
  stage_.buckets.release_weights(bucket_);
}

void DividedWeights::drop() {
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
