/// StepSize holds the size of a step that follows from options, data and the cut's file together.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

struct StepSize {
  std::optional<Cut> cut;                    ///< of --cut
  std::optional<std::int64_t> stages;        ///< of the cut, or --stages
  std::optional<std::int64_t> microbatches;  ///< --microbatches: of each copy of the pipeline
  std::optional<FixedData> data;             ///< that fix the microbatches
  std::int64_t microbatch_size = kUsualMicrobatchSize;
  std::optional<SampleData> samples;  ///< of which the run makes its batches

  /// Returns the microbatches of each of so many copies of the pipeline; none if neither data nor
  /// options give them.
  /// Errors: UsageArgument if the data do not divide, or contradict --microbatches.
  [[nodiscard]] std::optional<std::int64_t> microbatches_of(std::int64_t copies) const;
};

/// Returns the sizes. Errors: UsageArgument for options that contradict the data or the cut; those
/// of cut_option().
[[nodiscard]] StepSize step_size(const TrainOptions& options, const Work& work);

/// Returns the step at which the run ends; without --steps it reads the data once.
/// Errors: UsageArgument for a learning rate that needs more steps.
[[nodiscard]] std::int64_t steps_of(const TrainOptions& options,
                                    const StepSize& size,
                                    const WorkShape& shape);

}  // namespace stagecraft::tools
