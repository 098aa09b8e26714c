#include "stagecraft/examples/models/llama.h"

#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>

#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/examples/models/build_model.h"
#include "stagecraft/examples/models/layer_size.h"

namespace stagecraft::examples {
namespace {

constexpr double kNormEpsilon = 1e-5;
constexpr double kRotaryBase = 10000.0;

/// Rotates the pairs (i, i + head_dim / 2) of the last dimension.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  return x * cos + at::cat({-halves[1], halves[0]}, -1) * sin;
}

const LlamaOptions& checked(const LlamaOptions& o) {
  require_option(o.vocabulary >= 1 && o.layers >= 1 && o.dim >= 1 && o.heads >= 1 && o.ffn >= 1 &&
                     o.sequence >= 1,
                 "every size of a Llama is at least 1; found a smaller one");
  require_rotary_heads(o.dim, o.heads);
  require_stages(o.stages, o.layers, "layer");
  return o;
}

}  // namespace

void require_rotary_heads(std::int64_t dim, std::int64_t heads) {
  require_option(dim % heads == 0 && dim / heads % 2 == 0,
                 "heads divide dim into heads of an even width; found dim " + std::to_string(dim) +
                     " and " + std::to_string(heads) + " heads");
}

at::Tensor rotary_angles(std::int64_t sequence, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  const at::Tensor frequency = at::pow(kRotaryBase, -at::arange(half, at::kFloat) / half);
  const at::Tensor angle = at::outer(at::arange(sequence, at::kFloat), frequency);
  return at::cat({angle, angle}, -1);
}

RmsNormImpl::RmsNormImpl(std::int64_t dim) {
  weight_ = register_parameter("weight", at::ones({dim}));
}

at::Tensor RmsNormImpl::forward(const at::Tensor& x) {
  return at::rms_norm(x, weight_.sizes(), weight_, kNormEpsilon);
}

LlamaAttentionImpl::LlamaAttentionImpl(std::int64_t dim, std::int64_t heads)
    : heads_(heads),
      q_(register_module("q", unbiased(dim, dim))),
      k_(register_module("k", unbiased(dim, dim))),
      v_(register_module("v", unbiased(dim, dim))),
      o_(register_module("o", unbiased(dim, dim))) {}

at::Tensor LlamaAttentionImpl::forward(const at::Tensor& x,
                                       const at::Tensor& cos,
                                       const at::Tensor& sin) {
  const std::int64_t batch = x.size(0), sequence = x.size(1), dim = x.size(2);
  const auto split_heads = [&](const at::Tensor& y) {
    return y.view({batch, sequence, heads_, dim / heads_}).transpose(1, 2);
  };
  const at::Tensor q = split_heads(q_(x)), k = split_heads(k_(x)), v = split_heads(v_(x));
  const at::Tensor y = at::scaled_dot_product_attention(rotate(q, cos, sin),
                                                        rotate(k, cos, sin),
                                                        v,
                                                        /*attn_mask=*/{},
                                                        /*dropout_p=*/0.0,
                                                        /*is_causal=*/true);
  return o_(y.transpose(1, 2).reshape({batch, sequence, dim}));
}

LlamaLayerImpl::LlamaLayerImpl(const LlamaOptions& o)
    : norm1_(register_module("norm1", RmsNorm(o.dim))),
      norm2_(nullptr),
      attention_(register_module("attention", LlamaAttention(o.dim, o.heads))),
      gate_(nullptr),
      up_(nullptr),
      down_(nullptr) {
  // Registered after the attention: keeps LL-2.
  norm2_ = register_module("norm2", RmsNorm(o.dim));
  gate_ = register_module("gate", unbiased(o.dim, o.ffn));
  up_ = register_module("up", unbiased(o.dim, o.ffn));
  down_ = register_module("down", unbiased(o.ffn, o.dim));
}

at::Tensor LlamaLayerImpl::forward(const at::Tensor& x,
                                   const at::Tensor& cos,
                                   const at::Tensor& sin) {
  const at::Tensor attended = x + attention_(norm1_(x), cos, sin);
  const at::Tensor h = norm2_(attended);
  return attended + down_(at::silu(gate_(h)) * up_(h));
}

LlamaImpl::LlamaImpl(const LlamaOptions& options)
    : embed_(
          register_module("embed", torch::nn::Embedding(checked(options).vocabulary, options.dim))),
      layers_(register_module("layers", torch::nn::ModuleList())),
      norm_(nullptr),
      head_(nullptr) {
  draw_weights(*embed_, options.seed, kEmbeddingIndex);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    LlamaLayer layer(options);
    draw_weights(*layer, options.seed, static_cast<std::uint64_t>(i));
    layers_->push_back(layer);
  }
  norm_ = register_module("norm", RmsNorm(options.dim));
  head_ = register_module("head", unbiased(options.dim, options.vocabulary));
  draw_weights(*head_, options.seed, kHeadIndex);
  const at::Tensor angles = rotary_angles(options.sequence, options.dim / options.heads);
  cos_ = register_buffer("cos", at::cos(angles));
  sin_ = register_buffer("sin", at::sin(angles));
  layers_of_stage_ = divided(layers_, options.stages);
}

at::Tensor LlamaImpl::forward(const at::Tensor& tokens) {
  const auto& ranges = layers_of_stage_;
  at::Tensor x = tokens;
  for (std::size_t s = 0; s < ranges.size(); ++s) {
    stage("stage" + std::to_string(s), [&] {
      x = s == 0 ? embed_(x) : x;
      for (std::size_t i = ranges[s].first; i < ranges[s].second; ++i) {
        x = layers_[i]->as<LlamaLayer>()->forward(x, cos_, sin_);
      }
      x = s + 1 == ranges.size() ? head_(norm_(x)) : x;
    });
  }
  return x;
}

at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& target) {
  return at::cross_entropy_loss(logits.flatten(0, 1), target.flatten());
}

double weight_bytes(const LlamaOptions& m) {
  const double dim = as_double(m.dim);
  const double attention = 4 * dim * dim;
  const double feed_forward = 3 * dim * as_double(m.ffn);
  const double norms = 2 * dim;
  const double ends = 2 * as_double(m.vocabulary) * dim + dim;  // embedding, head, last norm
  return kBytesOfFloat * (as_double(m.layers) * (attention + feed_forward + norms) + ends);
}

double least_activation_bytes(const LlamaOptions& m, std::int64_t sequences) {
  const double dim = as_double(m.dim);
  const double tokens = as_double(sequences) * as_double(m.sequence);
  // The inputs of two norms, and these divided by their root mean square; one input of q, k and v,
  // one of gate and up; q, k, v and the result of the attention, which o reads.
  const double attention = 10 * dim;
  const double feed_forward = 4 * as_double(m.ffn);       // gate, up, silu of gate, their product
  const double ends = 3 * dim + as_double(m.vocabulary);  // last norm, head; log-softmax
  return kBytesOfFloat * tokens * (as_double(m.layers) * (attention + feed_forward) + ends);
}

}  // namespace stagecraft::examples
