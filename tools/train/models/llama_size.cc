#include "stagecraft/tools/train/models/llama_size.h"

namespace stagecraft::tools {
namespace {

constexpr double kBytes = sizeof(float);

struct Sizes {
  explicit Sizes(const examples::LlamaOptions& o)
      : vocabulary(static_cast<double>(o.vocabulary)),
        layers(static_cast<double>(o.layers)),
        dim(static_cast<double>(o.dim)),
        ffn(static_cast<double>(o.ffn)),
        sequence(static_cast<double>(o.sequence)) {}

  double vocabulary, layers, dim, ffn, sequence;
};

}  // namespace

double weight_bytes(const examples::LlamaOptions& model) {
  const Sizes s(model);
  const double attention = 4 * s.dim * s.dim;
  const double feed_forward = 3 * s.dim * s.ffn;
  const double norms = 2 * s.dim;
  const double ends = 2 * s.vocabulary * s.dim + s.dim;  // embedding, head, last norm
  return kBytes * (s.layers * (attention + feed_forward + norms) + ends);
}

double least_activation_bytes(const examples::LlamaOptions& model, std::int64_t sequences) {
  const Sizes s(model);
  const double tokens = static_cast<double>(sequences) * s.sequence;
  // The inputs of two norms, and these divided by their root mean square; one input of q, k and v,
  // one of gate and up; q, k, v and the result of the attention, which o reads.
  const double attention = 10 * s.dim;
  const double feed_forward = 4 * s.ffn;         // gate, up, silu of gate, their product
  const double ends = 3 * s.dim + s.vocabulary;  // last norm, head; log-softmax
  return kBytes * tokens * (s.layers * (attention + feed_forward) + ends);
}

double description_bytes(const examples::LlamaOptions& model) {
  return kBytesToDescribeALayer * Sizes(model).layers;
}

}  // namespace stagecraft::tools
