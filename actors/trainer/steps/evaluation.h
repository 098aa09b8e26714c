/// Evaluation is the result of evaluating a model on some batches.
///
/// Trainer::evaluate makes it. Metrics are means over all samples of all batches; so is the loss,
/// unless TrainerOptions::loss_weight says by how much the losses count (LM-1).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// OnOutputs gets the outputs of one batch of a prediction, one tensor per tensor that forward
/// returns.
using OnOutputs = std::function<void(std::vector<at::Tensor> outputs)>;

struct Evaluation {
  double loss = 0.0;
  std::int64_t batches = 0, samples = 0;
  std::vector<std::pair<std::string, at::Tensor>> metrics;  ///< in double, in the requested order

  /// Returns a metric that is one number. Errors: UsageArgument for a metric that was not
  /// requested, or that is not one number.
  [[nodiscard]] double operator[](std::string_view metric) const;
};

}  // namespace stagecraft
