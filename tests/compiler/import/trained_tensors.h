/// TrainedTensors compares the tensors at the end of a training with those of PyTorch, which
/// trained the same model from the same weights on another processor.
///
/// A gradient that is zero in exact arithmetic (of a bias before a batch norm) leaves nothing but
/// the rounding of one processor. So a parameter is compared at the scale of its terms: of its own
/// largest change, or of the model's median change where its own is smaller. A buffer is compared
/// at the scale of its largest element, or of the median buffer's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft::testing {

class TrainedTensors {
 public:
  /// Copies `initial`, the parameters before the first step.
  /// `expected` holds parameters and buffers.
  TrainedTensors(const std::vector<NamedTensor>& initial, std::vector<NamedTensor> expected);

  [[nodiscard]] const std::vector<NamedTensor>& expected() const { return expected_; }

  /// Returns the parameter as it was before the first step. Requires: `name` is a parameter.
  [[nodiscard]] const at::Tensor& initial(const std::string& name) const {
    return initial_.at(name);
  }

  /// Returns how far `found` is from `expected()[index]`, as a multiple of what the rounding of
  /// another processor may change. More than 1 is a fault.
  [[nodiscard]] double distance(std::size_t index, const at::Tensor& found) const;

 private:
  std::map<std::string, at::Tensor> initial_;
  std::vector<NamedTensor> expected_;
  std::vector<double> allowed_;  ///< of each of `expected_`: the largest difference of an element
};

}  // namespace stagecraft::testing
