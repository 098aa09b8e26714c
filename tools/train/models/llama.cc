/// --model llama
#include "stagecraft/examples/models/llama.h"

#include <fmt/format.h>

#include "stagecraft/tools/train/models/entries.h"
#include "stagecraft/tools/train/models/llama_size.h"
#include "stagecraft/tools/train/models/text_work.h"

namespace stagecraft::tools {
namespace {

class LlamaWork : public TextWork {
 public:
  using TextWork::TextWork;

  [[nodiscard]] WorkBytes bytes(const ScheduleChoice& choice) const override {
    const examples::LlamaOptions sizes = model(choice);
    WorkBytes bytes =
        bytes_with(weight_bytes(sizes), static_cast<double>(sizes.layers), example_bytes(), choice);
    bytes.microbatch = least_activation_bytes(sizes, options_.microbatch_size);
    return bytes;
  }

  [[nodiscard]] Program compile(const ScheduleChoice& choice) override {
    examples::Llama llama(model(choice));
    return compile_model(llama, examples::next_token_loss, choice);
  }

 private:
  [[nodiscard]] examples::LlamaOptions model(const ScheduleChoice& choice) const {
    return {.vocabulary = text_.vocabulary(),
            .layers = layers(choice.stages),
            .dim = options_.sizes.whole("dim"),
            .heads = options_.sizes.whole("heads"),
            .ffn = options_.sizes.whole("ffn"),
            .sequence = sequence(),
            .stages = choice.stages,
            .seed = options_.seed};
  }
};

}  // namespace

ModelEntry llama_entry() {
  return {.name = "llama",
          .summary = "a decoder that learns a text",
          .data = "text",
          .sizes = {{"layers", "layers, 4 or one per stage unless given", {}},
                    {"dim", "width", 128},
                    {"heads", "attention heads; divides --dim", 4},
                    {"ffn", "width of the feed-forward", 344},
                    {"seq", "bytes per sequence", 64}},
          .wrong = wrong_heads_of_rotated_pairs,
          .open = [](const TrainOptions& options, double most) -> std::unique_ptr<Work> {
            return std::make_unique<LlamaWork>(options, most);
          }};
}

}  // namespace stagecraft::tools
