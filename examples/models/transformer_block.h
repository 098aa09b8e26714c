/// TransformerBlock is pre-norm attention and feed-forward, with biases, LayerNorm and GELU.
///
/// ViT and both towers of CLIP use it.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

namespace stagecraft::examples {

struct BlockOptions {
  std::int64_t dim = 0, heads = 0, ffn = 0;
  double dropout = 0.0;  ///< after the products of the attention and of both feed-forward layers
  bool causal = false;   ///< a token sees itself and those before it
};

/// Counts the weights of a block.
[[nodiscard]] double block_weights(double dim, double ffn);
/// Counts the numbers that a block keeps of each token for its backward: the inputs of qkv, out, up
/// and down, and q, k and v.
[[nodiscard]] double kept_by_block(double dim, double ffn);

class TransformerBlockImpl : public torch::nn::Module {
 public:
  explicit TransformerBlockImpl(const BlockOptions& options);
  /// Shapes: [batch, tokens, dim] to the same.
  at::Tensor forward(const at::Tensor& x);

 private:
  at::Tensor attended(const at::Tensor& x);
  at::Tensor dropped(const at::Tensor& x) const;

  BlockOptions options_;
  torch::nn::LayerNorm norm1_, norm2_;
  torch::nn::Linear qkv_, out_, up_, down_;
};
TORCH_MODULE(TransformerBlock);

}  // namespace stagecraft::examples
