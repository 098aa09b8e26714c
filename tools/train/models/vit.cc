/// --model vit
#include "stagecraft/examples/models/vit.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "stagecraft/examples/models/model_size.h"
#include "stagecraft/tools/train/catalog/entries.h"
#include "stagecraft/tools/train/models/image_work.h"

namespace stagecraft::tools {
namespace {

class VitWork : public ImageWork {
 public:
  VitWork(const TrainOptions& options, double most)
      : ImageWork(options, read_classes, most), labels_(at::tensor(set_.labels, at::kLong)) {}

  [[nodiscard]] WorkBytes bytes(const ScheduleChoice& choice) const override {
    const examples::VitOptions sizes = model(choice);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(sizes.layers),
                    least_activation_bytes(sizes, options_.microbatch_size),
                    image_bytes() + sizeof(std::int64_t),
                    choice);
  }

  [[nodiscard]] Program compile(const ScheduleChoice& choice) override {
    examples::Vit vit(model(choice));
    return compile_model(vit, examples::classification_loss, choice);
  }

  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"accuracy", accuracy}}; }

 protected:
  [[nodiscard]] WorkBatch draw(std::int64_t step,
                               std::int64_t size,
                               int microbatches) const override {
    const at::Tensor chosen = examples_of(step, size * microbatches);
    return {{as_input(set_.pixels, chosen)}, {at::index_select(labels_, 0, chosen)}};
  }

 private:
  [[nodiscard]] examples::VitOptions model(const ScheduleChoice& choice) const {
    return {.image = side(),
            .patch = options_.sizes.whole("patch"),
            .classes = static_cast<std::int64_t>(set_.classes.size()),
            .layers = layers(choice.marked_stages()),
            .dim = options_.sizes.whole("dim"),
            .heads = options_.sizes.whole("heads"),
            .ffn = options_.sizes.whole("ffn"),
            .dropout = options_.sizes.real("dropout"),
            .stages = choice.marked_stages(),
            .seed = options_.seed};
  }

  const at::Tensor labels_;
};

}  // namespace

ModelEntry vit_entry() {
  return {.name = "vit",
          .summary = "a vision transformer that classifies images",
          .data = "images",
          .sizes = {{"image", kImageMeaning, 32},
                    {"patch", kPatchMeaning, 8},
                    {"layers", kLayersMeaning, {}},
                    {"dim", kDimMeaning, 128},
                    {"heads", kHeadsMeaning, 4},
                    {"ffn", kFfnMeaning, 512},
                    {"dropout", "probability", 0.0, ModelSize::Kind::FromZeroToOne}},
          .wrong = wrong_patches_or_heads,
          .open = [](const TrainOptions& options, double most) -> std::unique_ptr<Work> {
            return std::make_unique<VitWork>(options, most);
          }};
}

}  // namespace stagecraft::tools
