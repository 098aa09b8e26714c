/// prediction_program compiles a model from a file that need not have a loss.
#pragma once

#include "stagecraft/compiler/import/model_file.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

/// Returns a program of one stage for Trainer::predict. A program trains, so it gets a loss and a
/// weight that no prediction uses; no gradient reaches the model. `microbatch`: the inputs of one.
/// Errors: UsageFile for a model whose only output is a number, its loss; those of compile.
[[nodiscard]] Program prediction_program(ModelFile model,
                                         const Batch& microbatch,
                                         Precision precision);

}  // namespace stagecraft::tools
