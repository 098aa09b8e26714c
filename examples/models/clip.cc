#include "stagecraft/examples/models/clip.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/examples/models/build_model.h"
#include "stagecraft/examples/models/layer_size.h"
#include "stagecraft/examples/models/transformer_block.h"

namespace stagecraft::examples {
namespace {

constexpr double kFirstTemperature = 0.07;
constexpr double kLargestScale = 100.0;
// Above the numbers of the layers of any image tower.
constexpr std::uint64_t kTextIndex = 100'000;

torch::nn::ModuleList tower(const ClipOptions& o, bool text) {
  torch::nn::ModuleList layers;
  for (std::int64_t i = 0; i < (text ? o.text_layers : o.image_layers); ++i) {
    TransformerBlock layer(
        BlockOptions{.dim = o.dim, .heads = o.heads, .ffn = o.ffn, .causal = text});
    draw_weights(*layer, o.seed, static_cast<std::uint64_t>(i) + (text ? kTextIndex : 0));
    layers->push_back(layer);
  }
  return layers;
}

const ClipOptions& checked(const ClipOptions& o) {
  require_option(o.channels >= 1 && o.vocabulary >= 1 && o.sequence >= 1 && o.image_layers >= 1 &&
                     o.text_layers >= 1 && o.dim >= 1 && o.ffn >= 1 && o.embed >= 1,
                 "every size of a CLIP is at least 1; found a smaller one");
  require_patches(o.image, o.patch);
  require_heads(o.dim, o.heads);
  require_stages(o.stages, o.image_layers + o.text_layers + 1, "layer, or the head");
  return o;
}

at::Tensor run(torch::nn::ModuleList& layers, const ItemRange& range, at::Tensor x) {
  for (std::size_t i = range.first; i < range.second; ++i) {
    x = layers[i]->as<TransformerBlock>()->forward(x);
  }
  return x;
}

at::Tensor unit(const at::Tensor& x) {
  return x / at::linalg_vector_norm(x, 2, {-1}, /*keepdim=*/true);
}

}  // namespace

TextEmbeddingImpl::TextEmbeddingImpl(std::int64_t vocabulary,
                                     std::int64_t sequence,
                                     std::int64_t dim)
    : words_(register_module("words", torch::nn::Embedding(vocabulary, dim))) {
  positions_ = register_parameter("positions", at::zeros({sequence, dim}));
}

at::Tensor TextEmbeddingImpl::forward(const at::Tensor& tokens) {
  return words_(tokens) + positions_;
}

ClipImpl::ClipImpl(const ClipOptions& o)
    : patches_(register_module(
          "patches", PatchEmbedding(PatchSizes{checked(o).image, o.patch, o.channels, o.dim}))),
      image_layers_(register_module("image_layers", tower(o, /*text=*/false))),
      image_norm_(register_module("image_norm", layer_norm(o.dim))),
      image_projection_(register_module("image_projection", unbiased(o.dim, o.embed))),
      text_(register_module("text", TextEmbedding(o.vocabulary, o.sequence, o.dim))),
      text_layers_(register_module("text_layers", tower(o, /*text=*/true))),
      text_norm_(register_module("text_norm", layer_norm(o.dim))),
      text_projection_(register_module("text_projection", unbiased(o.dim, o.embed))) {
  draw_weights(*patches_, o.seed, kEmbeddingIndex);
  draw_weights(*text_, o.seed, kEmbeddingIndex + 1);
  draw_weights(*image_projection_, o.seed, kHeadIndex);
  draw_weights(*text_projection_, o.seed, kHeadIndex + 1);
  scale_ = register_parameter("scale", at::full({}, std::log(1 / kFirstTemperature)));
  stages_ = divided_towers(image_layers_, patches_->tokens(), text_layers_, o.sequence, o.stages);
}

at::Tensor ClipImpl::image_part(at::Tensor x, const ItemRange& layers) {
  x = layers.first == 0 ? patches_(x) : x;
  x = run(image_layers_, layers, x);
  return layers.second < image_layers_->size() ? x : image_projection_(image_norm_(x).select(1, 0));
}

at::Tensor ClipImpl::text_part(at::Tensor x, const at::Tensor& tokens, const ItemRange& layers) {
  x = layers.first == 0 ? text_(x) : x;
  x = run(text_layers_, layers, x);
  if (layers.second < text_layers_->size()) {
    return x;
  }
  const at::Tensor end = tokens.argmax(-1).view({-1, 1, 1}).expand({-1, 1, x.size(2)});
  return text_projection_(text_norm_(x).gather(1, end).squeeze(1));
}

at::Tensor ClipImpl::fit(const at::Tensor& image, const at::Tensor& text) {
  return scale_.exp().clamp_max(kLargestScale) * at::matmul(unit(image), unit(text).t());
}

at::Tensor ClipImpl::forward(const at::Tensor& images, const at::Tensor& tokens) {
  at::Tensor image = images, text = tokens, logits;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    stage("stage" + std::to_string(s), [&] {
      image = image_part(image, stages_[s].left);
      text = text_part(text, tokens, stages_[s].right);
      logits = s + 1 == stages_.size() ? fit(image, text) : logits;
    });
  }
  return logits;
}

at::Tensor contrastive_loss(const at::Tensor& logits) {
  const at::Tensor place = at::arange(logits.size(0));
  return (at::cross_entropy_loss(logits, place) + at::cross_entropy_loss(logits.t(), place)) / 2;
}

double weight_bytes(const ClipOptions& m) {
  const double dim = as_double(m.dim);
  const double text = (as_double(m.vocabulary) + as_double(m.sequence)) * dim;
  const double ends = 2 * (2 * dim + dim * as_double(m.embed));  // norms and projections
  const double layers = as_double(m.image_layers) + as_double(m.text_layers);
  return kBytesOfFloat * (patch_weights({m.image, m.patch, m.channels, m.dim}) + text +
                          layers * block_weights(dim, as_double(m.ffn)) + ends + 1);
}

double least_activation_bytes(const ClipOptions& m, std::int64_t pairs) {
  const double tokens =
      token_count({m.image, m.patch, m.channels, m.dim}) * as_double(m.image_layers) +
      as_double(m.sequence) * as_double(m.text_layers);
  return kBytesOfFloat * as_double(pairs) * tokens *
         kept_by_block(as_double(m.dim), as_double(m.ffn));
}

}  // namespace stagecraft::examples
