/// Llama is a small decoder-only language model with its pipeline stages marked.
///
/// It has RMSNorm, rotary embedding in the half-split form, causal scaled-dot-product attention,
/// SwiGLU, no biases, separate q, k, v and an untied output head. It is an ordinary LibTorch
/// module: only `forward` knows about stages.
///
/// LL-1: the weights of a layer depend on (seed, layer) alone, so every cut into stages starts from
///       the same weights.
/// LL-2: parameters are registered in the order in which a token meets them: embed, layers, norm,
///       head.
///
/// Sources: Touvron et al., "LLaMA: Open and Efficient Foundation Language Models" (2023), section
/// 2.2; Su et al., "RoFormer" (2021), for the rotary embedding; Shazeer, "GLU Variants Improve
/// Transformer" (2020).
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

namespace stagecraft::examples {

/// LlamaOptions says how large a Llama is, and how it is cut.
struct LlamaOptions {
  std::int64_t vocabulary = 256;
  std::int64_t layers = 4;
  std::int64_t dim = 128;
  std::int64_t heads = 4;  ///< divides dim; dim / heads is even (the rotary embedding turns pairs)
  std::int64_t ffn = 344;  ///< width of the SwiGLU
  std::int64_t sequence = 64;  ///< tokens per sequence, fixed
  std::int64_t stages = 4;     ///< at most `layers`
  std::uint64_t seed = 0;
};

/// Returns the bytes of all parameters, before the model is built. In double, so that a size beyond
/// 64 bits is refused and not mistaken for a small one.
[[nodiscard]] double weight_bytes(const LlamaOptions& model);

/// Returns a lower bound of the bytes that the forward of a microbatch keeps for its backward: the
/// operands of its matrix products. `sequences`: in the microbatch.
[[nodiscard]] double least_activation_bytes(const LlamaOptions& model, std::int64_t sequences);

/// Checks heads. Errors: UsageArgument unless `heads` divide `dim` into heads of an even width.
void require_rotary_heads(std::int64_t dim, std::int64_t heads);

/// Returns the angle of every (position, feature). Shape: [sequence, head_dim].
[[nodiscard]] at::Tensor rotary_angles(std::int64_t sequence, std::int64_t head_dim);

class RmsNormImpl : public torch::nn::Module {
 public:
  explicit RmsNormImpl(std::int64_t dim);
  at::Tensor forward(const at::Tensor& x);

 private:
  at::Tensor weight_;
};
TORCH_MODULE(RmsNorm);

class LlamaAttentionImpl : public torch::nn::Module {
 public:
  LlamaAttentionImpl(std::int64_t dim, std::int64_t heads);
  /// Shapes: x [batch, sequence, dim]; cos and sin [sequence, dim / heads].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

 private:
  std::int64_t heads_;
  torch::nn::Linear q_, k_, v_, o_;
};
TORCH_MODULE(LlamaAttention);

class LlamaLayerImpl : public torch::nn::Module {
 public:
  explicit LlamaLayerImpl(const LlamaOptions& options);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

 private:
  RmsNorm norm1_, norm2_;
  LlamaAttention attention_;
  torch::nn::Linear gate_, up_, down_;
};
TORCH_MODULE(LlamaLayer);

class LlamaImpl : public torch::nn::Module {
 public:
  /// Errors: UsageArgument if `options` breaks the requirements in its comments.
  explicit LlamaImpl(const LlamaOptions& options);

  /// Returns the logits. Shapes: tokens [batch, sequence] of int64 to [batch, sequence,
  /// vocabulary].
  at::Tensor forward(const at::Tensor& tokens);

 private:
  torch::nn::Embedding embed_;
  torch::nn::ModuleList layers_;
  RmsNorm norm_;
  torch::nn::Linear head_;
  at::Tensor cos_, sin_;
  std::vector<ItemRange> layers_of_stage_;
};
TORCH_MODULE(Llama);

/// Returns the mean cross entropy of every position. Shapes: logits [batch, sequence, vocabulary],
/// target [batch, sequence].
[[nodiscard]] at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& target);

}  // namespace stagecraft::examples
