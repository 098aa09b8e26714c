#include "stagecraft/tools/train/work/text_work.h"

namespace stagecraft::tools {
namespace {

// A text is read in growing pieces and takes up to three times its bytes for a moment.
constexpr double kReading = 3.0;

}  // namespace

TextWork::TextWork(const WorkRequest& request, double most)
    : ModelWork(request),
      text_(ByteText::read(request.data.text, request.model.sizes.whole("seq"), most / kReading)) {}

WorkBatch TextWork::draw(std::int64_t step, std::int64_t samples) const {
  const TextBatch windows = text_.batch(request_.seed, step, samples);
  return {{windows.tokens}, {windows.targets}};
}

std::optional<std::int64_t> TextWork::tokens(const WorkShape& shape) const {
  return shape.microbatch_size * shape.microbatches * sequence();
}

double TextWork::example_bytes() const {
  return 2.0 * sizeof(std::int64_t) * static_cast<double>(sequence());
}

}  // namespace stagecraft::tools
