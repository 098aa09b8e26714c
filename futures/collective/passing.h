/// Passing hands tensors over between the members of one process.
///
/// A tensor of a device may still be being written when the host hands it over. A Passing for
/// devices therefore orders the streams of giver and taker; tensors of the CPU need nothing. Any
/// thread may call it.
#pragma once

#include <utility>

#include <ATen/core/Tensor.h>

namespace stagecraft {

class Passing {
 public:
  Passing() = default;
  Passing(const Passing&) = delete;
  Passing(Passing&&) = delete;
  Passing& operator=(const Passing&) = delete;
  Passing& operator=(Passing&&) = delete;
  virtual ~Passing() = default;

  /// Returns the tensor for one taker. It can be read after all that the calling thread's current
  /// stream has been given.
  [[nodiscard]] virtual at::Tensor hand_over(const at::Tensor& tensor) { return tensor; }
  /// Returns a tensor that was handed over as one of this member's device, which the current stream
  /// can read.
  [[nodiscard]] virtual at::Tensor take_over(at::Tensor tensor) { return tensor; }
};

}  // namespace stagecraft
