#include "stagecraft/tools/train/models/image_work.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

/// Returns the class of each image; 0 for all if there are no classes.
std::vector<std::int64_t> classes_of(const ImageSet& set) {
  return set.labels.empty()
             ? std::vector<std::int64_t>(static_cast<std::size_t>(set.pixels.size(0)), 0)
             : set.labels;
}

}  // namespace

ImageWork::ImageWork(const TrainOptions& options, ReadFolder read, double most)
    : ModelWork(options),
      set_(options.images ? read(*options.images, options.sizes.whole("image"), most)
                          : drawn_images(options.seed, options.sizes.whole("image"))),
      draw_(classes_of(set_)) {
  if (options.eval_every && !draw_.has_evaluation()) {
    throw Error(Errc::UsageFile,
                fmt::format("--eval-every expects a class of two images at least in '{}', one of "
                            "which no step trains on; found none; leave it out, or give more",
                            options.images.value_or("")));
  }
}

at::Tensor ImageWork::examples_of(std::int64_t step, std::int64_t count) const {
  return step == kEvaluationStep ? draw_.of_evaluation(options_.seed, count)
                                 : draw_.of_step(options_.seed, step, count);
}

double ImageWork::image_bytes() const {
  return 3.0 * sizeof(float) * static_cast<double>(side()) * static_cast<double>(side());
}

}  // namespace stagecraft::tools
