/// ImageWork is the shared part of the works of image models: a set of images in memory.
#pragma once

#include "stagecraft/tools/images/example_draw.h"
#include "stagecraft/tools/images/image_set.h"
#include "stagecraft/tools/train/work/model_work.h"

namespace stagecraft::tools {

class ImageWork : public ModelWork {
 protected:
  /// ReadFolder reads the images of a folder. `most`: bytes that they may take.
  using ReadFolder = ImageSet (*)(const std::string& folder, std::int64_t side, double most);

  /// Reads --images, or draws images. Errors: those of `read`; UsageFile if an evaluation would
  /// find no example held out.
  ImageWork(const WorkRequest& request, ReadFolder read, double most);

  /// Returns images by index: those of a step, or of evaluations.
  [[nodiscard]] at::Tensor examples_of(std::int64_t step, std::int64_t count) const;
  [[nodiscard]] std::int64_t side() const { return size("image"); }
  /// Returns the size of an image as a model gets it. Units: bytes.
  [[nodiscard]] double image_bytes() const;

  const ImageSet set_;
  const ExampleDraw draw_;
};

}  // namespace stagecraft::tools
