#include "stagecraft/tools/train/models/vit.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "stagecraft/examples/models/vit.h"
#include "stagecraft/tools/train/work/image_work.h"

namespace stagecraft::tools {
namespace {

class VitWork : public ImageWork {
 public:
  VitWork(const WorkRequest& request, double most)
      : ImageWork(request, read_classes, most), labels_(at::tensor(set_.labels, at::kLong)) {}

  [[nodiscard]] WorkBytes bytes(const WorkShape& shape) const override {
    const examples::VitOptions sizes = model(shape);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(sizes.layers),
                    least_activation_bytes(sizes, shape.microbatch_size),
                    image_bytes() + sizeof(std::int64_t),
                    shape);
  }

  [[nodiscard]] Program compile(const WorkShape& shape) override {
    examples::Vit vit(model(shape));
    return compile_model(vit, examples::classification_loss, shape);
  }

  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"accuracy", accuracy}}; }

 protected:
  [[nodiscard]] WorkBatch draw(std::int64_t step, std::int64_t samples) const override {
    const at::Tensor chosen = examples_of(step, samples);
    return {{as_input(set_.pixels, chosen)}, {at::index_select(labels_, 0, chosen)}};
  }

 private:
  [[nodiscard]] examples::VitOptions model(const WorkShape& shape) const {
    return {.image = side(),
            .patch = size("patch"),
            .classes = static_cast<std::int64_t>(set_.classes.size()),
            .layers = layers(shape.marked_stages()),
            .dim = size("dim"),
            .heads = size("heads"),
            .ffn = size("ffn"),
            .dropout = request_.model.sizes.real("dropout"),
            .stages = shape.marked_stages(),
            .seed = request_.seed};
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
                    {"dropout", "dropout probability", 0.0, ModelSize::Kind::FromZeroToOne}},
          .wrong = wrong_patches_or_heads,
          .open = &open_as<VitWork>};
}

}  // namespace stagecraft::tools
