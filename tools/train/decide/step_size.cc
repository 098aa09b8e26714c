#include "stagecraft/tools/train/decide/step_size.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/program/cut_option.h"
#include "stagecraft/tools/train/options/update_rule.h"

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

/// StepsInData is how many batches data have.
struct StepsInData {
  std::string folder;
  std::int64_t batches = 0;
};

std::optional<StepsInData> steps_in_data(const StepSize& size, const WorkShape& shape) {
  if (size.data) {
    return StepsInData{size.data->folder, size.data->batches};
  }
  if (size.samples) {
    return StepsInData{size.samples->folder, size.samples->batches(shape)};
  }
  return std::nullopt;
}

/// Returns the samples of a microbatch. A cut that was planned for one size of microbatches trains
/// with that size.
std::int64_t microbatch_size_of(const TrainOptions& o, const std::optional<SampleData>& samples) {
  const std::optional<std::int64_t> stated = samples ? samples->microbatch_size() : std::nullopt;
  if (stated && o.pipeline.microbatch_size.value_or(*stated) != *stated) {
    refuse_size(fmt::format(
        "--microbatch-size expects {}, as '{}' states it, found {}; leave it out, or export the "
        "model with that size open",
        *stated,
        *o.model.file,
        *o.pipeline.microbatch_size));
  }
  const std::int64_t usual = stated.value_or(
      microbatch_size_of_cut(o.pipeline.cut).value_or(static_cast<int>(kUsualMicrobatchSize)));
  return o.pipeline.microbatch_size.value_or(usual);
}

}  // namespace

std::optional<std::int64_t> StepSize::microbatches_of(std::int64_t copies) const {
  if (!data) {
    return microbatches;
  }
  if (data->microbatches % copies != 0) {
    refuse_size(
        fmt::format("'{}' has {} in a step, and they do not divide over {} copies; use a number "
                    "of copies that divides them",
                    data->folder,
                    count_text(data->microbatches, "microbatch"),
                    copies));
  }
  const std::int64_t own = data->microbatches / copies;
  if (microbatches && *microbatches != own) {
    refuse_size(fmt::format(
        "--microbatches expects {}, as '{}' has them in a step{}, found {}; leave it out",
        own,
        data->folder,
        copies == 1 ? "" : fmt::format(" for each of {} copies", copies),
        *microbatches));
  }
  return own;
}

StepSize step_size(const TrainOptions& o, const Work& work) {
  StepSize size{.cut = cut_option(o.pipeline.cut),
                .microbatches = o.pipeline.microbatches,
                .data = work.fixed_data(),
                .samples = work.sample_data()};
  size.stages = stages_asked(o.pipeline, size.cut);
  if (!size.data) {
    size.microbatch_size = microbatch_size_of(o, size.samples);
  } else if (o.pipeline.microbatch_size) {
    refuse_size(fmt::format(
        "--microbatch-size expects shards of samples, found whole microbatches in '{}'; leave it "
        "out",
        size.data->folder));
  }
  return size;
}

std::int64_t steps_of(const TrainOptions& o, const StepSize& size, const WorkShape& shape) {
  const std::optional<StepsInData> data = steps_in_data(size, shape);
  if (!data) {
    return o.run.steps.value_or(kUsualSteps);  // parse_train_options() has judged the rate
  }
  // A step takes --accumulate batches of the data.
  const std::int64_t once = std::max<std::int64_t>(1, data->batches / o.run.accumulate);
  const std::int64_t steps = o.run.steps.value_or(once);
  if (o.optimizer.warmup > steps) {
    refuse_size(fmt::format(
        "--warmup expects at most {}, {}, found {}",
        steps,
        o.run.steps ? "as --steps says" : fmt::format("as many steps as '{}' has", data->folder),
        o.optimizer.warmup));
  }
  if (const std::string misfit = rate_misfit(o.optimizer, steps); !misfit.empty()) {
    refuse_size(misfit);
  }
  return steps;
}

}  // namespace stagecraft::tools
