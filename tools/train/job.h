/// TrainJob: everything a run needs, made and judged before the first worker starts.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/tools/byte_text.h"
#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/schedule_choice.h"

namespace stagecraft::tools {

struct TrainJob {
  TrainOptions options;
  ByteText text;
  ScheduleChoice choice;
  Program program;

  [[nodiscard]] std::int64_t sequences_per_step() const;
  [[nodiscard]] std::int64_t tokens_per_step() const;
};

/// Reads the text, settles the schedule and compiles the model: whatever fails fast, first.
/// Errors: those of the three, and UsageFile for a --save or --trace that could not be written later.
[[nodiscard]] TrainJob make_job(const TrainOptions& options);

[[nodiscard]] Optimizer make_optimizer(const TrainOptions& options);
[[nodiscard]] LearningRate make_learning_rate(const TrainOptions& options);

}  // namespace stagecraft::tools
