/// measures times a chain of perceptrons on a device: by LibTorch alone, as one rank, and as a
/// pipeline of two ranks that share the device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

namespace stagecraft::gpu {

struct Workload {
  std::int64_t layers = 8, width = 1024, rows = 4096;  ///< rows of a microbatch
  std::int64_t microbatches = 8;
  c10::ScalarType dtype = c10::kBFloat16;
  int steps = 20;  ///< measured, after 3 that are not
};

/// Units: seconds of a step, the median; bytes. `parts` are of a step.
struct Measures {
  double libtorch_seconds = 0.0;  ///< module, autograd and fused AdamW, without Stagecraft
  double one_rank_seconds = 0.0;
  double two_ranks_seconds = 0.0;
  /// The compute streams stood still though the next task's inputs were there: the largest of the
  /// two ranks.
  double launch_gaps_part = 0.0;
  std::int64_t peak_bytes = 0;     ///< allocated on the device by the two ranks
  std::int64_t billed_bytes = 0;   ///< weights, gradients, optimizer, and the plan's activations
  double loss_differs_part = 0.0;  ///< first loss of one rank against LibTorch's
};

/// `device`: with its number, as TrainerOptions::device. The peak is what comes on top of what the
/// process holds there already.
[[nodiscard]] Measures measure(const std::string& device, const Workload& workload);

/// Seconds of a step during which the device runs at least one kernel or copy.
struct Busy {
  double libtorch = 0.0, one_rank = 0.0, two_ranks = 0.0;
};

/// Returns nothing if LibTorch's profiler does not see the device. The profiler slows the host for
/// the rest of the process: measure() first.
[[nodiscard]] std::optional<Busy> busy(const std::string& device, const Workload& workload);

/// Returns what Stagecraft adds to LibTorch's calls on the host. Units: seconds for an instruction.
/// Measured on tensors so small that the host determines the time.
[[nodiscard]] double host_seconds_per_instruction(const std::string& device, int steps);

}  // namespace stagecraft::gpu
