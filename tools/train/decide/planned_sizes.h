/// planned_sizes returns the sizes of microbatches, in samples, from which `train --plan` chooses.
/// A step keeps its samples, so that every plan trains on the same data.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/work/work_shape.h"

namespace stagecraft::tools {

struct PlannedSizes {
  std::vector<int> samples;  ///< that of the options first, if it is among them; none: the data's
  /// the reason why there is no choice, unless the user decided that; otherwise empty
  std::string note;
};

/// Returns those of --microbatch-sizes. Without it, returns half, equal and twice the usual size,
/// as far as they divide a step. Returns only the usual size if the number or the size of
/// microbatches was given, and if another size would change the training: a model from a file,
/// whose data have one size, and a loss that compares samples. `usual`: microbatches and their size
/// without a plan.
/// Errors: UsageArgument for a size that does not divide the step.
[[nodiscard]] PlannedSizes planned_sizes(const TrainOptions& options, const WorkShape& usual);

}  // namespace stagecraft::tools
