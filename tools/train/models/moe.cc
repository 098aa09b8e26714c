#include "stagecraft/tools/train/models/moe.h"

#include "stagecraft/examples/models/moe.h"
#include "stagecraft/tools/train/work/text_work.h"

namespace stagecraft::tools {
namespace {

class MoeWork : public TextWork {
 public:
  using TextWork::TextWork;

  [[nodiscard]] WorkBytes bytes(const WorkShape& shape) const override {
    const examples::MoeOptions sizes = model(shape);
    WorkBytes bytes = bytes_of(weight_bytes(sizes),
                               static_cast<double>(sizes.layers),
                               least_activation_bytes(sizes, shape.microbatch_size),
                               example_bytes(),
                               shape);
    bytes.experts = examples::expert_bytes(sizes);
    bytes.region = bytes.experts / static_cast<double>(sizes.layers);
    return bytes;
  }

  [[nodiscard]] Program compile(const WorkShape& shape) override {
    const examples::MoeOptions sizes = model(shape);
    examples::Moe moe(sizes);
    return compile_model(moe, examples::moe_loss(sizes.balance), shape);
  }

 private:
  [[nodiscard]] examples::MoeOptions model(const WorkShape& shape) const {
    return {.vocabulary = text_.vocabulary(),
            .layers = layers(shape.marked_stages()),
            .dim = size("dim"),
            .heads = size("heads"),
            .ffn = size("ffn"),
            .experts = size("experts"),
            .capacity_factor = request_.model.sizes.real("capacity"),
            .balance = request_.model.sizes.real("balance"),
            .sequence = sequence(),
            .stages = shape.marked_stages(),
            .seed = request_.seed};
  }
};

std::string wrong_moe(const ModelSizes& sizes) {
  return sizes.whole("experts") < 2
             ? "--experts expects at least 2, because each token goes to two of them, found 1"
             : wrong_heads_of_rotated_pairs(sizes);
}

}  // namespace

ModelEntry moe_entry() {
  return {.name = "moe",
          .summary = "a Llama with a mixture of experts in each layer",
          .data = "text",
          .sizes = {{"layers", kLayersMeaning, {}},
                    {"dim", kDimMeaning, 128},
                    {"heads", kHeadsMeaning, 4},
                    {"ffn", kFfnMeaning, 344},
                    {"seq", "bytes per sequence", 64},
                    {"experts", "experts per layer; each token goes to two of them", 4},
                    {"capacity",
                     "places of an expert, as a multiple of its even share of the tokens",
                     1.25,
                     ModelSize::Kind::Positive},
                    {"balance",
                     "weight of the load-balancing loss",
                     0.01,
                     ModelSize::Kind::FromZeroToOne}},
          .wrong = wrong_moe,
          .open = &open_as<MoeWork>,
          .mixes_samples = true};  // experts have room for a limited number of tokens
}

}  // namespace stagecraft::tools
