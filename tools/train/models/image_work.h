/// ImageWork: what the works of models of images share: a set of them, in memory.
#pragma once

#include "stagecraft/tools/images/example_draw.h"
#include "stagecraft/tools/images/image_set.h"
#include "stagecraft/tools/train/models/model_work.h"

namespace stagecraft::tools {

class ImageWork : public ModelWork {
 protected:
  /// Images of a folder. `most`: bytes that they may take.
  using ReadFolder = ImageSet (*)(const std::string& folder, std::int64_t side, double most);

  /// Reads --images, or draws. Errors: those of `read`; UsageFile where --eval-every would find
  /// nothing held out.
  ImageWork(const TrainOptions& options, ReadFolder read, double most);

  /// Images by index: of a step, or for evaluations.
  [[nodiscard]] at::Tensor examples_of(std::int64_t step, std::int64_t count) const;
  [[nodiscard]] std::int64_t side() const { return options_.sizes.whole("image"); }
  /// Units: bytes, of an image as a model gets it.
  [[nodiscard]] double image_bytes() const;

  const ImageSet set_;
  const ExampleDraw draw_;
};

}  // namespace stagecraft::tools
