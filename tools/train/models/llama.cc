#include "stagecraft/tools/train/models/llama.h"

#include "stagecraft/examples/models/llama.h"
#include "stagecraft/tools/train/work/text_work.h"

namespace stagecraft::tools {
namespace {

class LlamaWork : public TextWork {
 public:
  using TextWork::TextWork;

  [[nodiscard]] WorkBytes bytes(const WorkShape& shape) const override {
    const examples::LlamaOptions sizes = model(shape);
    return bytes_of(weight_bytes(sizes),
                    static_cast<double>(sizes.layers),
                    least_activation_bytes(sizes, shape.microbatch_size),
                    example_bytes(),
                    shape);
  }

  [[nodiscard]] Program compile(const WorkShape& shape) override {
    examples::Llama llama(model(shape));
    return compile_model(llama, examples::next_token_loss, shape);
  }

 private:
  [[nodiscard]] examples::LlamaOptions model(const WorkShape& shape) const {
    return {.vocabulary = text_.vocabulary(),
            .layers = layers(shape.marked_stages()),
            .dim = size("dim"),
            .heads = size("heads"),
            .ffn = size("ffn"),
            .sequence = sequence(),
            .stages = shape.marked_stages(),
            .seed = request_.seed};
  }
};

}  // namespace

ModelEntry llama_entry() {
  return {.name = "llama",
          .summary = "a decoder-only language model",
          .data = "text",
          .sizes = {{"layers", kLayersMeaning, {}},
                    {"dim", kDimMeaning, 128},
                    {"heads", kHeadsMeaning, 4},
                    {"ffn", kFfnMeaning, 344},
                    {"seq", "bytes per sequence", 64}},
          .wrong = wrong_heads_of_rotated_pairs,
          .open = &open_as<LlamaWork>};
}

}  // namespace stagecraft::tools
