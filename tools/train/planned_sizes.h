/// planned_sizes: of how many samples the microbatches may be that `train --plan` chooses from. A
/// step keeps its samples, so that every plan trains on the same data.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/train/options.h"

namespace stagecraft::tools {

struct PlannedSizes {
  std::vector<int>
      samples;       ///< that of the options first, where it is among them; none: the data's
  std::string note;  ///< why there is no choice, where nobody asked for that; else empty
};

/// Those of --microbatch-sizes; else half, as many and twice as many as the options have, as far as
/// a step can be divided into such; only the options' own where number or size of microbatches was
/// given, and for what another size would change: a model from a file, whose data have one, and a
/// loss that compares samples.
/// `microbatches`: of a step, each of options.microbatch_size.
/// Errors: UsageArgument for a size that does not divide the step.
[[nodiscard]] PlannedSizes planned_sizes(const TrainOptions& options, int microbatches);

}  // namespace stagecraft::tools
