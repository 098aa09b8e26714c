/// --model llama
#include "stagecraft/examples/models/llama.h"

#include "stagecraft/tools/train/catalog/entries.h"
#include "stagecraft/tools/train/models/llama_size.h"
#include "stagecraft/tools/train/models/text_work.h"

namespace stagecraft::tools {
namespace {

class LlamaWork : public TextWork {
 public:
  using TextWork::TextWork;

  [[nodiscard]] WorkBytes bytes(const ScheduleChoice& choice) const override {
    const examples::LlamaOptions sizes = model(choice);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(sizes.layers),
                    least_activation_bytes(sizes, options_.microbatch_size),
                    example_bytes(),
                    choice);
  }

  [[nodiscard]] Program compile(const ScheduleChoice& choice) override {
    examples::Llama llama(model(choice));
    return compile_model(llama, examples::next_token_loss, choice);
  }

 private:
  [[nodiscard]] examples::LlamaOptions model(const ScheduleChoice& choice) const {
    return {.vocabulary = text_.vocabulary(),
            .layers = layers(choice.marked_stages()),
            .dim = options_.sizes.whole("dim"),
            .heads = options_.sizes.whole("heads"),
            .ffn = options_.sizes.whole("ffn"),
            .sequence = sequence(),
            .stages = choice.marked_stages(),
            .seed = options_.seed};
  }
};

}  // namespace

ModelEntry llama_entry() {
  return {.name = "llama",
          .summary = "a decoder that learns a text",
          .data = "text",
          .sizes = {{"layers", kLayersMeaning, {}},
                    {"dim", kDimMeaning, 128},
                    {"heads", kHeadsMeaning, 4},
                    {"ffn", kFfnMeaning, 344},
                    {"seq", "bytes per sequence", 64}},
          .wrong = wrong_heads_of_rotated_pairs,
          .open = [](const TrainOptions& options, double most) -> std::unique_ptr<Work> {
            return std::make_unique<LlamaWork>(options, most);
          }};
}

}  // namespace stagecraft::tools
