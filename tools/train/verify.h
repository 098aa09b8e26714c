/// Verifier: holds a pipelined run against one process that trained on the same microbatches.
///
/// "Equal" means every bit, so that a NaN equals itself and 0 does not equal -0. Fed by the
/// sub-command step by step and once at the end; knows nothing of how either side computes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/tools/train/progress.h"

namespace stagecraft::tools {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

class Verifier {
 public:
  /// Compares the losses of the microbatches of one step and their mean.
  void step(std::int64_t step,
            const std::vector<double>& pipeline,
            const std::vector<double>& one_process,
            double pipeline_mean,
            double one_process_mean);

  /// Compares all parameters; `stage_of` names the stage of a parameter for the message.
  void parameters(const NamedTensors& pipeline,
                  const NamedTensors& one_process,
                  const std::function<std::string(const std::string&)>& stage_of);

  [[nodiscard]] const VerifyLine& result() const { return result_; }

 private:
  void differ(bool& told, const std::string& where, double by);

  VerifyLine result_{.bit_equal = true};
  // The first of either kind is told: a loss says when, a parameter says where.
  bool told_loss_ = false;
  bool told_parameter_ = false;
};

}  // namespace stagecraft::tools
