/// Clip is an image tower and a text tower that meet in a contrastive head, with its pipeline
/// stages marked. Neither tower waits for the other.
///
///     image ---+
///              +--- head
///     text  ---+
///
/// Its weights keep LL-1; only `forward` knows about stages.
///
/// Source: Radford et al., "Learning Transferable Visual Models From Natural Language Supervision"
///         (2021), figure 3 and section 2.4.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include "stagecraft/examples/models/build_model.h"
#include "stagecraft/examples/models/patch_embedding.h"
#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

namespace stagecraft::examples {

/// ClipOptions says how large a CLIP is, and how it is cut.
struct ClipOptions {
  std::int64_t image = 32;  ///< height and width
  std::int64_t patch = 8;   ///< height and width of a patch; divides image
  std::int64_t channels = 3;
  std::int64_t vocabulary = 256;
  std::int64_t sequence = 32;  ///< tokens per text, fixed
  std::int64_t image_layers = 2;
  std::int64_t text_layers = 2;
  std::int64_t dim = 128;   ///< of both towers
  std::int64_t heads = 4;   ///< divides dim
  std::int64_t ffn = 512;   ///< width of the feed-forwards
  std::int64_t embed = 64;  ///< width of the space in which images meet texts
  /// 1: everything in one stage; 2: the image tower, the text tower with the head; 3: image tower,
  /// text tower, head; more stages cut the towers, with at least one layer each.
  std::int64_t stages = 3;
  std::uint64_t seed = 0;
};

/// Returns the bytes of all parameters, before the model is built. In double, so that a size beyond
/// 64 bits is refused and not mistaken for a small one.
[[nodiscard]] double weight_bytes(const ClipOptions& model);

/// Returns a lower bound of the bytes that the forward of a microbatch keeps for its backward: the
/// operands of its matrix products. `pairs`: in the microbatch.
[[nodiscard]] double least_activation_bytes(const ClipOptions& model, std::int64_t pairs);

class TextEmbeddingImpl : public torch::nn::Module {
 public:
  TextEmbeddingImpl(std::int64_t vocabulary, std::int64_t sequence, std::int64_t dim);
  /// Shapes: [batch, sequence] of int64 to [batch, sequence, dim].
  at::Tensor forward(const at::Tensor& tokens);

 private:
  torch::nn::Embedding words_;
  at::Tensor positions_;
};
TORCH_MODULE(TextEmbedding);

class ClipImpl : public torch::nn::Module {
 public:
  /// Errors: UsageArgument if `options` breaks the requirements in its comments.
  explicit ClipImpl(const ClipOptions& options);

  /// Returns how well each image fits each text of the microbatch, scaled: a row for each image, a
  /// column for each text. A text is read up to the first of its largest token. For bytes, end the
  /// text by 255, which UTF-8 never has, and fill the rest with 0.
  /// Shapes: images [batch, channels, image, image] of float, tokens [batch, sequence] of int64, to
  ///         [batch, batch].
  at::Tensor forward(const at::Tensor& images, const at::Tensor& tokens);

 private:
  [[nodiscard]] at::Tensor image_part(at::Tensor x, const ItemRange& layers);
  [[nodiscard]] at::Tensor text_part(at::Tensor x,
                                     const at::Tensor& tokens,
                                     const ItemRange& layers);
  [[nodiscard]] at::Tensor fit(const at::Tensor& image, const at::Tensor& text);

  PatchEmbedding patches_;
  torch::nn::ModuleList image_layers_;
  torch::nn::LayerNorm image_norm_;
  torch::nn::Linear image_projection_;
  TextEmbedding text_;
  torch::nn::ModuleList text_layers_;
  torch::nn::LayerNorm text_norm_;
  torch::nn::Linear text_projection_;
  at::Tensor scale_;
  std::vector<TowerStage> stages_;
};
TORCH_MODULE(Clip);

/// Returns the mean of the cross entropies over rows and over columns. Each image belongs to the
/// text at its own place, so it needs no labels. Shapes: logits [batch, batch].
[[nodiscard]] at::Tensor contrastive_loss(const at::Tensor& logits);

}  // namespace stagecraft::examples
