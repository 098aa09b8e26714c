#include "stagecraft/tools/train/work/image_work.h"

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

ImageWork::ImageWork(const WorkRequest& request, ReadFolder read, double most)
    : ModelWork(request),
      set_(request.data.images
               ? read(*request.data.images, request.model.sizes.whole("image"), most)
               : drawn_images(request.seed, request.model.sizes.whole("image"))),
      draw_(classes_of(set_)) {
  if (request.evaluates && !draw_.has_evaluation()) {
    throw Error(Errc::UsageFile,
                fmt::format("an evaluation expects a class of at least two images in '{}', so that "
                            "one of them is held out; found none; add images, or do not evaluate",
                            request.data.images.value_or("")));
  }
}

at::Tensor ImageWork::examples_of(std::int64_t step, std::int64_t count) const {
  return step == kEvaluationStep ? draw_.of_evaluation(request_.seed, count)
                                 : draw_.of_step(request_.seed, step, count);
}

double ImageWork::image_bytes() const {
  return 3.0 * sizeof(float) * static_cast<double>(side()) * static_cast<double>(side());
}

}  // namespace stagecraft::tools
