#include "stagecraft/tools/train/decide/step_size.h"

#include <string>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/program/cut_option.h"

namespace stagecraft::tools {
namespace {

[[noreturn]] void refuse_size(const std::string& message) {
  throw Error(Errc::UsageArgument, message);
}

std::optional<std::int64_t> stages_asked(const PipelineOptions& o, const std::optional<Cut>& cut) {
  const std::optional<int> stages = cut ? stages_of(*cut) : std::nullopt;
  if (stages && o.stages && *o.stages != *stages) {
    refuse_size(fmt::format(
        "--stages expects {}, as --cut makes them, found {}; leave it out", *stages, *o.stages));
  }
  return stages ? *stages : o.stages;
}

std::int64_t microbatches_of(const PipelineOptions& o, const FixedData& data) {
  if (o.microbatches && *o.microbatches != data.microbatches) {
    refuse_size(
        fmt::format("--microbatches expects {}, as '{}' has them in a step, found {}; leave it out",
                    data.microbatches,
                    data.folder,
                    *o.microbatches));
  }
  return data.microbatches;
}

/// A step takes --accumulate batches of the data.
std::int64_t steps_of(const TrainOptions& o, const FixedData& data) {
  const std::int64_t most = data.batches / o.run.accumulate;
  if (most == 0) {
    refuse_size(fmt::format(
        "--accumulate expects at most {}, as many batches as '{}' has, found {}; give fewer, or "
        "more data",
        data.batches,
        data.folder,
        o.run.accumulate));
  }
  const std::string range = fmt::format(
      "at most {}, as many as '{}' has{}",
      most,
      data.folder,
      o.run.accumulate == 1 ? "" : fmt::format(" of {} batches each", o.run.accumulate));
  const std::int64_t steps = o.run.steps.value_or(most);
  if (steps > most) {
    refuse_size(
        fmt::format("--steps expects {}, found {}; give fewer, or more data", range, steps));
  }
  if (o.optimizer.warmup > steps) {
    refuse_size(fmt::format("--warmup expects {}, found {}", range, o.optimizer.warmup));
  }
  return steps;
}

}  // namespace

StepSize step_size(const TrainOptions& o, const Work& work) {
  StepSize size{.cut = cut_option(o.pipeline.cut), .microbatches = o.pipeline.microbatches};
  size.stages = stages_asked(o.pipeline, size.cut);
  if (const auto data = work.fixed_data()) {
    size.microbatches = microbatches_of(o.pipeline, *data);
    size.steps = steps_of(o, *data);
    return size;
  }
  // A cut that was planned for one size of microbatches trains with that size.
  size.microbatch_size = o.pipeline.microbatch_size.value_or(
      microbatch_size_of_cut(o.pipeline.cut).value_or(static_cast<int>(kUsualMicrobatchSize)));
  size.steps = o.run.steps.value_or(kUsualSteps);
  return size;
}

}  // namespace stagecraft::tools
