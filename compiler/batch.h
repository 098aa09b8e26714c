/// Batch: the tensors of one step, as `compile` gets an example of them and `step` one after the
/// other.
#pragma once

#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// One tensor of a batch: split over the microbatches in dim 0, or given whole to each.
struct BatchTensor {
  at::Tensor tensor;
  bool replicated = false;

  BatchTensor(at::Tensor t)
      : tensor(std::move(t)) {
  }  // NOLINT(google-explicit-constructor): a batch is a list of tensors
  BatchTensor(at::Tensor t, bool whole) : tensor(std::move(t)), replicated(whole) {}
};

/// Every microbatch gets all of `tensor`.
[[nodiscard]] inline BatchTensor replicated(at::Tensor tensor) {
  return {std::move(tensor), true};
}

using Batch = std::vector<BatchTensor>;

}  // namespace stagecraft
