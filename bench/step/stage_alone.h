/// stage_alone measures the costs of a stage when nothing else runs. A schedule's ideal is computed
/// from them.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft::bench {

/// StageTimes holds the result. Units: seconds; forward and backward of one microbatch, update of a
/// step.
struct StageTimes {
  double forward = 0.0, backward = 0.0, update = 0.0;
};

/// Measures the work of a rank for a microbatch of the stage, and its update with AdamW, on this
/// thread. Returns the medians of `repetitions`. `inputs`, `labels`: of the model, of one
/// microbatch. Values from other stages are random.
[[nodiscard]] StageTimes time_stage(const Program& program,
                                    const StageProgram& stage,
                                    const std::vector<at::Tensor>& inputs,
                                    const std::vector<at::Tensor>& labels,
                                    int repetitions);

}  // namespace stagecraft::bench
