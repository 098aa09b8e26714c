/// PatchEmbedding turns an image into a row of tokens, with a class token before them and learned
/// positions added.
///
/// ViT and CLIP's image tower use it.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

namespace stagecraft::examples {

struct PatchSizes {
  std::int64_t image = 0, patch = 0, channels = 0, dim = 0;
};

/// Counts the patches of an image and the class token.
[[nodiscard]] double token_count(const PatchSizes& sizes);
/// Counts the weights of the embedding.
[[nodiscard]] double patch_weights(const PatchSizes& sizes);

class PatchEmbeddingImpl : public torch::nn::Module {
 public:
  explicit PatchEmbeddingImpl(const PatchSizes& sizes);

  /// Shapes: [batch, channels, image, image] to [batch, 1 + (image / patch)^2, dim].
  at::Tensor forward(const at::Tensor& images);

  /// Returns the number of the class token and the patches.
  [[nodiscard]] std::int64_t tokens() const { return positions_.size(1); }

 private:
  torch::nn::Conv2d patches_;
  at::Tensor class_token_, positions_;
};
TORCH_MODULE(PatchEmbedding);

}  // namespace stagecraft::examples
