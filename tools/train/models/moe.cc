/// --model moe
#include "stagecraft/examples/models/moe.h"

#include "stagecraft/examples/models/model_size.h"
#include "stagecraft/tools/train/catalog/entries.h"
#include "stagecraft/tools/train/models/text_work.h"

namespace stagecraft::tools {
namespace {

class MoeWork : public TextWork {
 public:
  using TextWork::TextWork;

  [[nodiscard]] WorkBytes bytes(const ScheduleChoice& choice) const override {
    const examples::MoeOptions sizes = model(choice);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(sizes.layers),
                    least_activation_bytes(sizes, options_.microbatch_size),
                    example_bytes(),
                    choice);
  }

  [[nodiscard]] Program compile(const ScheduleChoice& choice) override {
    const examples::MoeOptions sizes = model(choice);
    examples::Moe moe(sizes);
    return compile_model(moe, examples::moe_loss(sizes.balance), choice);
  }

 private:
  [[nodiscard]] examples::MoeOptions model(const ScheduleChoice& choice) const {
    return {.vocabulary = text_.vocabulary(),
            .layers = layers(choice.marked_stages()),
            .dim = options_.sizes.whole("dim"),
            .heads = options_.sizes.whole("heads"),
            .ffn = options_.sizes.whole("ffn"),
            .experts = options_.sizes.whole("experts"),
            .capacity_factor = options_.sizes.real("capacity"),
            .balance = options_.sizes.real("balance"),
            .sequence = sequence(),
            .stages = choice.marked_stages(),
            .seed = options_.seed};
  }
};

std::string wrong_moe(const ModelSizes& sizes) {
  return sizes.whole("experts") < 2
             ? "--experts expects at least 2, as each token goes to two of them, found 1"
             : wrong_heads_of_rotated_pairs(sizes);
}

}  // namespace

ModelEntry moe_entry() {
  return {.name = "moe",
          .summary = "a Llama whose feed-forwards are experts",
          .data = "text",
          .sizes = {{"layers", kLayersMeaning, {}},
                    {"dim", kDimMeaning, 128},
                    {"heads", kHeadsMeaning, 4},
                    {"ffn", kFfnMeaning, 344},
                    {"seq", "bytes per sequence", 64},
                    {"experts", "experts of a layer, two of which take a token", 4},
                    {"capacity",
                     "of an expert, as a multiple of its even share",
                     1.25,
                     ModelSize::Kind::Positive},
                    {"balance",
                     "weight of the load-balance loss",
                     0.01,
                     ModelSize::Kind::FromZeroToOne}},
          .wrong = wrong_moe,
          .open = [](const TrainOptions& options, double most) -> std::unique_ptr<Work> {
            return std::make_unique<MoeWork>(options, most);
          },
          .mixes_samples = true};  // experts have room for a limited number of tokens
}

}  // namespace stagecraft::tools
