/// Batch: the tensors of one step, as `compile` gets an example of them and `step` one after the
/// other.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// One tensor of a batch: split over the microbatches in dim 0, or given whole to each.
struct BatchTensor {
  at::Tensor tensor;
  bool replicated = false;
  std::string name;  ///< for a forward that takes a map; empty: none

  BatchTensor(at::Tensor t)
      : tensor(std::move(t)) {
  }  // NOLINT(google-explicit-constructor): a batch is a list of tensors
  BatchTensor(at::Tensor t, bool whole) : tensor(std::move(t)), replicated(whole) {}
};

/// Every microbatch gets all of `tensor`.
[[nodiscard]] inline BatchTensor replicated(at::Tensor tensor) {
  return {std::move(tensor), true};
}

/// A tensor that a forward with a map finds there under `name`.
[[nodiscard]] inline BatchTensor named(std::string name, BatchTensor tensor) {
  tensor.name = std::move(name);
  return tensor;
}

using Batch = std::vector<BatchTensor>;

/// Of each tensor.
[[nodiscard]] inline std::vector<std::string> names_of(const Batch& batch) {
  std::vector<std::string> names;
  for (const BatchTensor& one : batch) {
    names.push_back(one.name);
  }
  return names;
}

}  // namespace stagecraft
