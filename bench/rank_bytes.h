/// count_bytes: what every rank of a pipeline holds of tensors' memory, counted block by block as
/// LibTorch's CPU allocator hands it out and gets it back.
///
/// Ranks are threads here, each with its executor and its pool as in a trainer, and each is counted
/// as if it were alone on its device:
/// RB-1: a block is that of the rank whose thread allocates it, whoever frees it.
/// RB-2: what travels is copied, as between processes: the copy is the receiver's, from the
///       instruction that takes it on. Until then it waits, and is counted apart: how much waits
///       hangs on who is faster, and all else on the plan alone.
/// RB-3: parts of the batch travel like all else. What the driver keeps of them is nobody's.
///
/// Memory that libraries take elsewhere (MKL's and oneDNN's own buffers, malloc's objects) is not
/// seen; scratch that operators ask of LibTorch is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/cell.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft::bench {

/// Units: bytes.
struct RankBytes {
  std::int64_t state = 0;      ///< between steps: weights, gradients, optimizer state, buffers
  std::int64_t peak = 0;       ///< most at once, with the state
  std::int64_t waiting = 0;    ///< most at once that had come before it was taken
  std::optional<Task> during;  ///< what the rank was at when it held most
};

/// Trains some steps. Returns what each rank held, by rank.
/// Requires: `inputs` and `labels` are a batch as the program was compiled for.
/// Errors: those of StageExecutor.
[[nodiscard]] std::vector<RankBytes> count_bytes(const Program& program,
                                                 const Schedule& schedule,
                                                 const Optimizer& optimizer,
                                                 const Batch& inputs,
                                                 const Batch& labels);

}  // namespace stagecraft::bench
