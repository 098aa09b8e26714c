/// StepLosses holds the losses that a rank computes in one step.
///
/// It is a part of the running step. Reading a number waits for the device, so the losses stay
/// tensors until nothing else is left to compute, and no stage waits for them.
#pragma once

#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/step/step_record.h"

namespace stagecraft {

class StepLosses {
 public:
  void add(Microbatch microbatch, at::Tensor loss);

  /// Returns the numbers of all losses added so far, ascending by microbatch. Waits for the device.
  [[nodiscard]] const std::vector<MicrobatchLoss>& read();

 private:
  void fetch();

  std::vector<std::pair<Microbatch, at::Tensor>> unread_;
  std::vector<MicrobatchLoss> read_;
};

}  // namespace stagecraft
