#include "stagecraft/tools/train/models/text_work.h"

namespace stagecraft::tools {
namespace {

// A text is read in growing pieces and takes up to three times its bytes for a moment.
constexpr double kReading = 3.0;

}  // namespace

TextWork::TextWork(const TrainOptions& options, double most)
    : ModelWork(options),
      text_(ByteText::read(options.text, options.sizes.whole("seq"), most / kReading)) {}

WorkBatch TextWork::draw(std::int64_t step, std::int64_t size, int microbatches) const {
  const TextBatch windows = text_.batch(options_.seed, step, size * microbatches);
  return {{windows.tokens}, {windows.targets}};
}

std::optional<std::int64_t> TextWork::tokens(const ScheduleChoice& choice) const {
  return options_.microbatch_size * choice.microbatches * sequence();
}

double TextWork::example_bytes() const {
  return 2.0 * sizeof(std::int64_t) * static_cast<double>(sequence());
}

}  // namespace stagecraft::tools
