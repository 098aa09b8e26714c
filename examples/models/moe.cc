#include "stagecraft/examples/models/moe.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/compiler/native/count.h"
#include "stagecraft/examples/models/build_model.h"
#include "stagecraft/examples/models/layer_size.h"

namespace stagecraft::examples {
namespace {

constexpr std::int64_t kChoices = 2;

/// Returns a row of `count` for each number: 1 at its place, 0 elsewhere; all 0 for a number past
/// the end.
at::Tensor places(const at::Tensor& numbers, std::int64_t count) {
  return at::eq(numbers.unsqueeze(-1), at::arange(count));
}

const MoeOptions& checked(const MoeOptions& o) {
  require_option(o.vocabulary >= 1 && o.layers >= 1 && o.dim >= 1 && o.heads >= 1 && o.ffn >= 1 &&
                     o.sequence >= 1,
                 "every size of a mixture of experts is at least 1; found a smaller one");
  require_rotary_heads(o.dim, o.heads);
  require_option(o.experts >= kChoices,
                 "a token goes to two experts; found " + std::to_string(o.experts) + " of them");
  require_option(std::isfinite(o.capacity_factor) && o.capacity_factor > 0,
                 "the capacity factor is above 0; found " + std::to_string(o.capacity_factor));
  require_option(
      std::isfinite(o.balance) && o.balance >= 0,
      "the weight of the load-balance loss is at least 0; found " + std::to_string(o.balance));
  require_stages(o.stages, o.layers, "layer");
  return o;
}

}  // namespace

std::int64_t expert_capacity(std::int64_t tokens, std::int64_t experts, double capacity_factor) {
  const double share = static_cast<double>(kChoices * tokens) / static_cast<double>(experts);
  // A token chooses an expert at most once.
  return static_cast<std::int64_t>(
      std::min(std::ceil(capacity_factor * share), static_cast<double>(tokens)));
}

Routing route(const at::Tensor& probabilities, std::int64_t capacity) {
  const std::int64_t tokens = probabilities.size(0), experts = probabilities.size(1);
  const auto [best, choice] = at::topk(probabilities, kChoices);
  const at::Tensor weight = best / best.sum(-1, /*keepdim=*/true);
  const at::Tensor chosen = places(choice.t(), experts);  // [choices, tokens, experts]
  // Counts the earlier tokens, first choices before second ones: keeps MX-1.
  const at::Tensor in_line = chosen.reshape({kChoices * tokens, experts});
  const at::Tensor before = ((at::cumsum(in_line, 0) - 1) * in_line).sum(-1);
  const at::Tensor place = places(before.view({kChoices, tokens}), capacity);
  const auto type = probabilities.scalar_type();
  return {
      .combine = at::einsum("tk,kte,ktc->tec", {weight, chosen.to(type), place.to(type)}),
      .balance = (chosen[0].to(type).mean(0) * probabilities.mean(0)).sum() * experts,
  };
}

MoeFeedForwardImpl::MoeFeedForwardImpl(const MoeOptions& o)
    : experts_(o.experts),
      capacity_factor_(o.capacity_factor),
      router_(register_module("router", unbiased(o.dim, o.experts))) {
  gate_ = register_parameter("gate", at::zeros({o.experts, o.dim, o.ffn}));
  up_ = register_parameter("up", at::zeros({o.experts, o.dim, o.ffn}));
  down_ = register_parameter("down", at::zeros({o.experts, o.ffn, o.dim}));
}

std::pair<at::Tensor, at::Tensor> MoeFeedForwardImpl::forward(const at::Tensor& x) {
  const at::Tensor tokens = x.flatten(0, 1);
  const Routing routing = route(at::softmax(router_(tokens), -1),
                                expert_capacity(tokens.size(0), experts_, capacity_factor_));
  const at::Tensor placed = at::gt(routing.combine, 0);  // [token, expert, place]
  count("tokens_per_expert", placed.sum(at::IntArrayRef{0, 2}));
  count("dropped_choices", kChoices * tokens.size(0) - placed.sum());
  const at::Tensor dispatch = placed.to(x.scalar_type());
  const at::Tensor in = at::einsum("tec,td->ecd", {dispatch, tokens});
  const at::Tensor out =
      region("EP", [&] { return at::bmm(at::silu(at::bmm(in, gate_)) * at::bmm(in, up_), down_); });
  return {at::einsum("tec,ecd->td", {routing.combine, out}).view_as(x), routing.balance};
}

MoeLayerImpl::MoeLayerImpl(const MoeOptions& o)
    : norm1_(register_module("norm1", RmsNorm(o.dim))),
      norm2_(nullptr),
      attention_(register_module("attention", LlamaAttention(o.dim, o.heads))),
      experts_(nullptr) {
  norm2_ = register_module("norm2", RmsNorm(o.dim));
  experts_ = register_module("experts", MoeFeedForward(o));
}

std::pair<at::Tensor, at::Tensor> MoeLayerImpl::forward(const at::Tensor& x,
                                                        const at::Tensor& cos,
                                                        const at::Tensor& sin) {
  const at::Tensor attended = x + attention_(norm1_(x), cos, sin);
  const auto [answer, balance] = experts_(norm2_(attended));
  return {attended + answer, balance};
}

MoeImpl::MoeImpl(const MoeOptions& o)
    : embed_(register_module("embed", torch::nn::Embedding(checked(o).vocabulary, o.dim))),
      layers_(register_module("layers", torch::nn::ModuleList())),
      norm_(nullptr),
      head_(nullptr) {
  draw_weights(*embed_, o.seed, kEmbeddingIndex);
  for (std::int64_t i = 0; i < o.layers; ++i) {
    MoeLayer layer(o);
    draw_weights(*layer, o.seed, static_cast<std::uint64_t>(i));
    layers_->push_back(layer);
  }
  norm_ = register_module("norm", RmsNorm(o.dim));
  head_ = register_module("head", unbiased(o.dim, o.vocabulary));
  draw_weights(*head_, o.seed, kHeadIndex);
  const at::Tensor angles = rotary_angles(o.sequence, o.dim / o.heads);
  cos_ = register_buffer("cos", at::cos(angles));
  sin_ = register_buffer("sin", at::sin(angles));
  layers_of_stage_ = divided(layers_, o.stages);
}

std::tuple<at::Tensor, at::Tensor> MoeImpl::forward(const at::Tensor& tokens) {
  const auto& ranges = layers_of_stage_;
  at::Tensor x = tokens, balance;
  for (std::size_t s = 0; s < ranges.size(); ++s) {
    stage("stage" + std::to_string(s), [&] {
      x = s == 0 ? embed_(x) : x;
      for (std::size_t i = ranges[s].first; i < ranges[s].second; ++i) {
        const auto [h, more] = layers_[i]->as<MoeLayer>()->forward(x, cos_, sin_);
        x = h;
        balance = balance.defined() ? balance + more : more;  // keeps MX-2
      }
      x = s + 1 == ranges.size() ? head_(norm_(x)) : x;
    });
  }
  return {x, balance};
}

at::Tensor MoeLoss::operator()(const at::Tensor& logits,
                               const at::Tensor& balance,
                               const at::Tensor& targets) const {
  return next_token_loss(logits, targets) + balance_ * balance;
}

double expert_bytes(const MoeOptions& m) {
  return kBytesOfFloat * as_double(m.layers) * as_double(m.experts) * 3 * as_double(m.dim) *
         as_double(m.ffn);
}

double weight_bytes(const MoeOptions& m) {
  const double dim = as_double(m.dim), experts = as_double(m.experts);
  const double layer = 4 * dim * dim + 2 * dim + dim * experts;
  return expert_bytes(m) +
         kBytesOfFloat * (as_double(m.layers) * layer + 2 * as_double(m.vocabulary) * dim + dim);
}

double least_activation_bytes(const MoeOptions& m, std::int64_t sequences) {
  const double tokens = as_double(sequences) * as_double(m.sequence);
  const double dim = as_double(m.dim), experts = as_double(m.experts);
  const double capacity = std::min(std::ceil(m.capacity_factor * 2 * tokens / experts), tokens);
  // Counts the same as for the Llama, and the experts' inputs, intermediate values and answers; the
  // routing, twice.
  const double attention = tokens * 10 * dim;
  const double answers = experts * capacity * (2 * dim + 4 * as_double(m.ffn));
  const double routing = 2 * tokens * experts * capacity;
  const double ends = tokens * (3 * dim + as_double(m.vocabulary));
  return kBytesOfFloat * (as_double(m.layers) * (attention + answers + routing) + ends);
}

}  // namespace stagecraft::examples
