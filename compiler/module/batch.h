/// Batch holds the tensors of one step. `compile` takes one batch as an example; `step` takes one
/// batch per step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// BatchTensor is one tensor of a batch. It is split over the microbatches in dim 0, or given whole
/// to each.
struct BatchTensor {
  at::Tensor tensor;
  bool replicated = false;
  std::string name;  ///< for a forward that takes a map; empty for no name

  BatchTensor(at::Tensor t)
      : tensor(std::move(t)) {
  }  // NOLINT(google-explicit-constructor): a batch is a list of tensors
  BatchTensor(at::Tensor t, bool whole) : tensor(std::move(t)), replicated(whole) {}
};

/// Returns a BatchTensor that every microbatch gets as a whole.
[[nodiscard]] inline BatchTensor replicated(at::Tensor tensor) {
  return {std::move(tensor), true};
}

/// Returns a BatchTensor that a forward with a map finds under `name`.
[[nodiscard]] inline BatchTensor named(std::string name, BatchTensor tensor) {
  tensor.name = std::move(name);
  return tensor;
}

using Batch = std::vector<BatchTensor>;

/// Returns the name of each tensor.
[[nodiscard]] inline std::vector<std::string> names_of(const Batch& batch) {
  std::vector<std::string> names;
  for (const BatchTensor& one : batch) {
    names.push_back(one.name);
  }
  return names;
}

}  // namespace stagecraft
