#include "stagecraft/examples/models/llama.h"

#include <string>

#include <ATen/CPUGeneratorImpl.h>
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
#include <c10/core/GradMode.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/markers.h"

namespace stagecraft::examples {
namespace {

constexpr double kNormEpsilon = 1e-5;
constexpr double kRotaryBase = 10000.0;
constexpr double kInitialDeviation = 0.02;
// Far above any layer's number, so that no two modules share a generator.
constexpr std::uint64_t kEmbeddingIndex = 1'000'000;
constexpr std::uint64_t kHeadIndex = 2'000'000;

torch::nn::Linear linear(std::int64_t from, std::int64_t to) {
  return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(false));
}

/// Draws every matrix of `module` from its own generator; norm weights stay 1. Keeps LL-1.
void seed_weights(torch::nn::Module& module, std::uint64_t seed, std::uint64_t index) {
  const at::NoGradGuard no_grad;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed * 10'000'019 + index);
  for (at::Tensor& parameter : module.parameters()) {
    if (parameter.dim() > 1) {
      parameter.normal_(0.0, kInitialDeviation, generator);
    }
  }
}

/// Turns the pairs (i, i + head_dim / 2) of the last dimension.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  return x * cos + at::cat({-halves[1], halves[0]}, -1) * sin;
}

/// The angle of every (position, feature). Shape: [sequence, head_dim].
at::Tensor rotary_angles(std::int64_t sequence, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  const at::Tensor frequency = at::pow(kRotaryBase, -at::arange(half, at::kFloat) / half);
  const at::Tensor angle = at::outer(at::arange(sequence, at::kFloat), frequency);
  return at::cat({angle, angle}, -1);
}

const LlamaOptions& checked(const LlamaOptions& o) {
  const auto require = [](bool holds, const std::string& message) {
    if (!holds) {
      throw Error(Errc::UsageArgument, message);
    }
  };
  require(o.vocabulary >= 1 && o.layers >= 1 && o.dim >= 1 && o.heads >= 1 && o.ffn >= 1 &&
              o.sequence >= 1,
          "every size of a Llama is at least 1; found a smaller one");
  require(o.dim % o.heads == 0 && o.dim / o.heads % 2 == 0,
          "heads divide dim into heads of an even width; found dim " + std::to_string(o.dim) +
              " and " + std::to_string(o.heads) + " heads");
  require(o.stages >= 1 && o.stages <= o.layers,
          "a stage holds at least one layer; found " + std::to_string(o.stages) + " stages for " +
              std::to_string(o.layers) + " layers");
  return o;
}

/// Balanced by the parameters of each layer, whose products are most of its work.
std::vector<ItemRange> divided(torch::nn::ModuleList& layers, std::int64_t stages) {
  std::vector<CutItem> items;
  for (const auto& layer : *layers) {
    CutItem item{.time = 0};
    for (const at::Tensor& parameter : layer->parameters()) {
      item.time += static_cast<double>(parameter.numel());
    }
    items.push_back(item);
  }
  return balanced_cut(items, static_cast<int>(stages));
}

}  // namespace

RmsNormImpl::RmsNormImpl(std::int64_t dim) {
  weight_ = register_parameter("weight", at::ones({dim}));
}

at::Tensor RmsNormImpl::forward(const at::Tensor& x) {
  return at::rms_norm(x, weight_.sizes(), weight_, kNormEpsilon);
}

LlamaAttentionImpl::LlamaAttentionImpl(std::int64_t dim, std::int64_t heads)
    : heads_(heads),
      q_(register_module("q", linear(dim, dim))),
      k_(register_module("k", linear(dim, dim))),
      v_(register_module("v", linear(dim, dim))),
      o_(register_module("o", linear(dim, dim))) {}

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
  // After the attention: keeps LL-2.
  norm2_ = register_module("norm2", RmsNorm(o.dim));
  gate_ = register_module("gate", linear(o.dim, o.ffn));
  up_ = register_module("up", linear(o.dim, o.ffn));
  down_ = register_module("down", linear(o.ffn, o.dim));
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
  seed_weights(*embed_, options.seed, kEmbeddingIndex);
  for (std::int64_t i = 0; i < options.layers; ++i) {
    LlamaLayer layer(options);
    seed_weights(*layer, options.seed, static_cast<std::uint64_t>(i));
    layers_->push_back(layer);
  }
  norm_ = register_module("norm", RmsNorm(options.dim));
  head_ = register_module("head", linear(options.dim, options.vocabulary));
  seed_weights(*head_, options.seed, kHeadIndex);
  const at::Tensor angles = rotary_angles(options.sequence, options.dim / options.heads);
  cos_ = register_buffer("cos", at::cos(angles));
  sin_ = register_buffer("sin", at::sin(angles));
  layers_of_stage_ = divided(layers_, options.stages);
}

at::Tensor LlamaImpl::forward(const at::Tensor& tokens) {
  const auto& ranges = layers_of_stage_;
  at::Tensor x = tokens;
  for (std::size_t s = 0; s < ranges.size(); ++s) {
    x = stage(
        "stage" + std::to_string(s),
        [&](at::Tensor h) {
          h = s == 0 ? embed_(h) : h;
          for (std::size_t i = ranges[s].first; i < ranges[s].second; ++i) {
            h = layers_[i]->as<LlamaLayer>()->forward(h, cos_, sin_);
          }
          return s + 1 == ranges.size() ? head_(norm_(h)) : h;
        },
        x);
  }
  return x;
}

at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& target) {
  return at::cross_entropy_loss(logits.flatten(0, 1), target.flatten());
}

}  // namespace stagecraft::examples
