/// What a stage costs when nothing else runs: the figures that a schedule's ideal is made of.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/program.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft::bench {

/// Units: seconds; forward and backward of one microbatch, update of a step.
struct StageTimes {
  double forward = 0.0, backward = 0.0, update = 0.0;
};

/// What a rank does for a microbatch of the stage, and its update with AdamW, on this thread: the
/// medians of `repetitions`. `inputs`, `labels`: of the model, of one microbatch; what other stages
/// send is drawn.
[[nodiscard]] StageTimes time_stage(const Program& program,
                                    const StageProgram& stage,
                                    const std::vector<at::Tensor>& inputs,
                                    const std::vector<at::Tensor>& labels,
                                    int repetitions);

}  // namespace stagecraft::bench
