/// gpu_memory finds how much memory the GPUs of a run have left.
#pragma once

#include <optional>

#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Returns what the GPUs of `ranks` have left in all; nothing for ranks on the CPU, for ranks in
/// other processes, whose GPUs this one does not open, and for a dry run where CUDA cannot be used.
/// Errors: UsageArgument, about "device", for one that this process does not have.
[[nodiscard]] std::optional<MemoryLimit> gpu_memory(const TrainOptions& options, int ranks);

/// Returns the smallest share of a GPU's free memory that one of `ranks` gets if ranks on one GPU
/// share it equally. Units: bytes; infinite where gpu_memory() returns nothing.
/// Errors: as gpu_memory().
[[nodiscard]] double gpu_memory_of_each(const TrainOptions& options, int ranks);

}  // namespace stagecraft::tools
