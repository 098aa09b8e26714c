/// ViT is a vision transformer that classifies images, with its pipeline stages marked.
///
/// It has patch embedding, class token, learned positions, pre-norm blocks, and a classifier on the
/// class token. Its weights keep LL-1; only `forward` knows about stages.
///
/// Source: Dosovitskiy et al., "An Image is Worth 16x16 Words" (2021), section 3.1; dropout as in
///         appendix B.1.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include "stagecraft/examples/models/patch_embedding.h"
#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

namespace stagecraft::examples {

/// VitOptions says how large a ViT is, and how it is cut.
struct VitOptions {
  std::int64_t image = 32;  ///< height and width
  std::int64_t patch = 8;   ///< height and width of a patch; divides image
  std::int64_t channels = 3;
  std::int64_t classes = 10;
  std::int64_t layers = 4;
  std::int64_t dim = 128;
  std::int64_t heads = 4;   ///< divides dim
  std::int64_t ffn = 512;   ///< width of the feed-forward
  double dropout = 0.0;     ///< from 0 to below 1
  std::int64_t stages = 4;  ///< at most `layers`
  std::uint64_t seed = 0;
};

/// Returns the bytes of all parameters, before the model is built. In double, so that a size beyond
/// 64 bits is refused and not mistaken for a small one.
[[nodiscard]] double weight_bytes(const VitOptions& model);

/// Returns a lower bound of the bytes that the forward of a microbatch keeps for its backward: the
/// operands of its matrix products. `images`: in the microbatch.
[[nodiscard]] double least_activation_bytes(const VitOptions& model, std::int64_t images);

class VitImpl : public torch::nn::Module {
 public:
  /// Errors: UsageArgument if `options` breaks the requirements in its comments.
  explicit VitImpl(const VitOptions& options);

  /// Returns the logits. Shapes: images [batch, channels, image, image] of float to [batch,
  /// classes].
  at::Tensor forward(const at::Tensor& images);

 private:
  at::Tensor embedded(const at::Tensor& images);

  PatchEmbedding embed_;
  torch::nn::ModuleList layers_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
  double dropout_;
  std::vector<ItemRange> layers_of_stage_;
};
TORCH_MODULE(Vit);

/// Returns the mean cross entropy. Shapes: logits [batch, classes], labels [batch] of int64.
[[nodiscard]] at::Tensor classification_loss(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace stagecraft::examples
