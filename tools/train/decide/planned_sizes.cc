#include "stagecraft/tools/train/decide/planned_sizes.h"

#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/train/catalog/models.h"

namespace stagecraft::tools {
namespace {

/// Returns whether a step divides into microbatches of `samples` samples, a number that planners
/// take.
bool divides(std::int64_t samples, std::int64_t step) {
  return samples > 0 && samples <= std::numeric_limits<int>::max() && step % samples == 0;
}

void check_given(const std::vector<int>& sizes, std::int64_t step) {
  for (const int samples : sizes) {
    if (!divides(samples, step)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("--microbatch-sizes expects divisors of {}, the samples of a step, "
                              "found {}; leave it out, or change --microbatches",
                              step,
                              samples));
    }
  }
}

}  // namespace

PlannedSizes planned_sizes(const TrainOptions& options, const WorkShape& usual) {
  if (options.model.file) {
    return {.samples = {},
            .note = fmt::format("microbatches stay as they are, {} a step: a model from a file is "
                                "planned for those alone",
                                usual.microbatches)};
  }
  const std::int64_t own = usual.microbatch_size;
  const std::int64_t step = own * usual.microbatches;
  if (const std::vector<int>& given = options.planner.microbatch_sizes; !given.empty()) {
    check_given(given, step);
    return {.samples = given, .note = {}};
  }
  PlannedSizes found{.samples = {static_cast<int>(own)}, .note = {}};
  if (options.pipeline.microbatches || options.pipeline.microbatch_size) {
    return found;
  }
  if (find_model(options.model.name).mixes_samples) {
    found.note = fmt::format(
        "microbatches stay {} of {}: the loss of {} depends on which samples share one; "
        "--microbatch-sizes lets a plan choose",
        usual.microbatches,
        own,
        options.model.name);
    return found;
  }
  for (const std::int64_t samples : {own % 2 == 0 ? own / 2 : 0, 2 * own}) {
    if (divides(samples, step)) {
      found.samples.push_back(static_cast<int>(samples));
    }
  }
  return found;
}

}  // namespace stagecraft::tools
