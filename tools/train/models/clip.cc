/// --model clip
#include "stagecraft/examples/models/clip.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/examples/models/model_size.h"
#include "stagecraft/tools/images/caption_text.h"
#include "stagecraft/tools/train/catalog/entries.h"
#include "stagecraft/tools/train/models/image_work.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kDefaultTowerLayers = 2;

class ClipWork : public ImageWork {
 public:
  ClipWork(const TrainOptions& options, double most)
      : ImageWork(options, read_captions, most), text_(set_.captions, options.sizes.whole("seq")) {}

  [[nodiscard]] WorkBytes bytes(const ScheduleChoice& choice) const override {
    const examples::ClipOptions sizes = model(choice);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(sizes.image_layers + sizes.text_layers),
                    least_activation_bytes(sizes, options_.microbatch_size),
                    image_bytes() + sizeof(std::int64_t) * static_cast<double>(sizes.sequence),
                    choice);
  }

  [[nodiscard]] Program compile(const ScheduleChoice& choice) override {
    examples::Clip clip(model(choice));
    return compile_model(clip, examples::contrastive_loss, choice);
  }

 protected:
  [[nodiscard]] WorkBatch draw(std::int64_t step,
                               std::int64_t size,
                               int microbatches) const override {
    const at::Tensor chosen = examples_of(step, size * microbatches);
    return {{as_input(set_.pixels, chosen),
             text_.of_images(chosen, generator_of(options_.seed, step, Drawn::Captions))},
            {}};
  }

 private:
  [[nodiscard]] examples::ClipOptions model(const ScheduleChoice& choice) const {
    // The head may be a stage of its own.
    const std::int64_t needed = choice.marked_stages() / 2;
    const std::int64_t layers = options_.sizes.has("layers")
                                    ? options_.sizes.whole("layers")
                                    : std::max(kDefaultTowerLayers, needed);
    if (needed > layers) {
      throw Error(Errc::UsageArgument,
                  fmt::format("--layers expects at least {} in each tower for {} stages, found "
                              "{}; give more layers, or fewer --ranks or --stages",
                              needed,
                              choice.marked_stages(),
                              layers));
    }
    return {.image = side(),
            .patch = options_.sizes.whole("patch"),
            .vocabulary = text_.vocabulary(),
            .sequence = options_.sizes.whole("seq"),
            .image_layers = layers,
            .text_layers = layers,
            .dim = options_.sizes.whole("dim"),
            .heads = options_.sizes.whole("heads"),
            .ffn = options_.sizes.whole("ffn"),
            .embed = options_.sizes.whole("embed"),
            .stages = choice.marked_stages(),
            .seed = options_.seed};
  }

  const CaptionText text_;
};

}  // namespace

ModelEntry clip_entry() {
  return {.name = "clip",
          .summary = "an image tower beside a text tower",
          .data = "images",
          .sizes = {{"image", kImageMeaning, 32},
                    {"patch", kPatchMeaning, 8},
                    {"layers", "layers of each tower, 2 or what the stages need unless given", {}},
                    {"dim", kDimMeaning, 128},
                    {"heads", kHeadsMeaning, 4},
                    {"ffn", kFfnMeaning, 512},
                    {"seq", "bytes per caption, and one for its end", 32},
                    {"embed", "width of the space in which images meet captions", 64}},
          .wrong = wrong_patches_or_heads,
          .open = [](const TrainOptions& options, double most) -> std::unique_ptr<Work> {
            return std::make_unique<ClipWork>(options, most);
          },
          .may_branch = true,
          .mixes_samples = true};  // the loss compares a text with those of its microbatch
}

}  // namespace stagecraft::tools
