#include "stagecraft/tools/train/models/clip.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/examples/models/clip.h"
#include "stagecraft/tools/images/caption_text.h"
#include "stagecraft/tools/train/work/image_work.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kDefaultTowerLayers = 2;

class ClipWork : public ImageWork {
 public:
  ClipWork(const WorkRequest& request, double most)
      : ImageWork(request, read_captions, most),
        text_(set_.captions, request.model.sizes.whole("seq")) {}

  [[nodiscard]] WorkBytes bytes(const WorkShape& shape) const override {
    const examples::ClipOptions sizes = model(shape);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(sizes.image_layers + sizes.text_layers),
                    least_activation_bytes(sizes, shape.microbatch_size),
                    image_bytes() + sizeof(std::int64_t) * static_cast<double>(sizes.sequence),
                    shape);
  }

  [[nodiscard]] Program compile(const WorkShape& shape) override {
    examples::Clip clip(model(shape));
    return compile_model(clip, examples::contrastive_loss, shape);
  }

 protected:
  [[nodiscard]] WorkBatch draw(std::int64_t step, std::int64_t samples) const override {
    const at::Tensor chosen = examples_of(step, samples);
    return {{as_input(set_.pixels, chosen),
             text_.of_images(chosen, generator_of(request_.seed, step, Drawn::Captions))},
            {}};
  }

 private:
  [[nodiscard]] examples::ClipOptions model(const WorkShape& shape) const {
    // The head may be a stage of its own.
    const std::int64_t needed = shape.marked_stages() / 2;
    const std::int64_t layers =
        request_.model.sizes.has("layers") ? size("layers") : std::max(kDefaultTowerLayers, needed);
    if (needed > layers) {
      throw Error(Errc::UsageArgument,
                  fmt::format("--layers expects at least {} in each tower for {} stages, found "
                              "{}; give more layers, or fewer --ranks or --stages",
                              needed,
                              shape.marked_stages(),
                              layers));
    }
    return {.image = side(),
            .patch = size("patch"),
            .vocabulary = text_.vocabulary(),
            .sequence = size("seq"),
            .image_layers = layers,
            .text_layers = layers,
            .dim = size("dim"),
            .heads = size("heads"),
            .ffn = size("ffn"),
            .embed = size("embed"),
            .stages = shape.marked_stages(),
            .seed = request_.seed};
  }

  const CaptionText text_;
};

}  // namespace

ModelEntry clip_entry() {
  return {.name = "clip",
          .summary = "an image tower and a text tower with a contrastive loss",
          .data = "images",
          .sizes = {{"image", kImageMeaning, 32},
                    {"patch", kPatchMeaning, 8},
                    {"layers", "layers of each tower [2, or as many as the stages need]", {}},
                    {"dim", kDimMeaning, 128},
                    {"heads", kHeadsMeaning, 4},
                    {"ffn", kFfnMeaning, 512},
                    {"seq", "bytes per caption, including its end", 32},
                    {"embed", "width of the space shared by images and captions", 64}},
          .wrong = wrong_patches_or_heads,
          .open = &open_as<ClipWork>,
          .may_branch = true,
          .mixes_samples = true};  // the loss compares a text with those of its microbatch
}

}  // namespace stagecraft::tools
