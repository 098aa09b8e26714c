/// count_bytes measures the memory that every rank of a pipeline holds for tensors. It counts block
/// by block as LibTorch's CPU allocator hands memory out and gets it back.
///
/// Ranks are threads here, each with its executor and its pool as in a trainer. Each is counted as
/// if it were alone on its device:
/// RB-1: a block belongs to the rank whose thread allocates it, even if another thread frees it.
/// RB-2: a tensor that is sent is copied, as between processes. The copy belongs to the receiver
///       from the instruction that takes it. Until then it waits and is counted separately: the
///       amount that waits depends on which rank is faster, and everything else depends on the plan
///       alone.
/// RB-3: parts of the batch are sent like all other tensors. The driver's own copies belong to no
///       rank.
///
/// Memory that libraries take elsewhere (the buffers of MKL and oneDNN, malloc's objects) is not
/// seen. Scratch memory that operators request from LibTorch is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft::bench {

/// RankBytes holds the bytes of one rank. Units: bytes.
struct RankBytes {
  std::int64_t state = 0;      ///< between steps: weights, gradients, optimizer state, buffers
  std::int64_t peak = 0;       ///< the most at once, with the state
  std::int64_t waiting = 0;    ///< the most at once that had arrived and was not taken yet
  std::optional<Task> during;  ///< the rank's task when it held the most
};

/// Trains some steps. Returns the bytes that each rank held, by rank.
/// Requires: `inputs` and `labels` are a batch of the compiled shape.
/// Errors: those of StageExecutor.
[[nodiscard]] std::vector<RankBytes> count_bytes(const Program& program,
                                                 const Schedule& schedule,
                                                 const Optimizer& optimizer,
                                                 const Batch& inputs,
                                                 const Batch& labels);

}  // namespace stagecraft::bench
