/// TrainJob: everything a run needs, made and judged before the first worker starts.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/tools/byte_text.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/train/memory_bill.h"
#include "stagecraft/tools/train/memory_limits.h"
#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/schedule_choice.h"

namespace stagecraft::tools {

struct TrainJob {
  TrainOptions options;
  ByteText text;
  ScheduleChoice choice;
  Program program;
  Program laid_out;  ///< the program once per replica, which the plan is of
  Plan plan;         ///< of a training step
  MemoryBill memory;
  std::vector<MemoryLimit> limits;  ///< as they were before the model was built

  [[nodiscard]] std::int64_t sequences_per_step() const;
  [[nodiscard]] std::int64_t tokens_per_step() const;
};

/// Tries the places to be written to, reads the text, settles the schedule, judges the memory and
/// compiles the model: whatever fails fast, first.
/// Errors: those of each; UsageFile for a --save or --trace that could not be written later, and
/// for
///         two options that name one file of which one would be lost; DeviceOutOfMemory, with the
///         bill, where memory does not suffice, unless forced.
[[nodiscard]] TrainJob make_job(const TrainOptions& options, Console& console);

[[nodiscard]] Optimizer make_optimizer(const TrainOptions& options);
[[nodiscard]] LearningRate make_learning_rate(const TrainOptions& options);

}  // namespace stagecraft::tools
