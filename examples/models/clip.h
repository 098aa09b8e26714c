/// Clip: an image tower and a text tower that meet in a contrastive head, with the pipeline stages
/// marked: neither tower waits for the other.
///
///     image ---+
///              +--- head
///     text  ---+
///
/// Weights by LL-1; only `forward` knows about stages.
///
/// Source: Radford et al., "Learning Transferable Visual Models From Natural Language Supervision"
/// (2021), figure 3 and section 2.4.
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

#include "stagecraft/examples/models/clip_options.h"
#include "stagecraft/examples/models/patch_embedding.h"
#include "stagecraft/scheduler/balanced_cut.h"

namespace stagecraft::examples {

class ClipImpl : public torch::nn::Module {
 public:
  /// Errors: UsageArgument when `options` breaks what its comments require.
  explicit ClipImpl(const ClipOptions& options);

  /// Returns how well each image fits each text of the microbatch, scaled: a row for each image, a
  /// column for each text. A text is read up to the first of its largest token: of bytes let 255
  /// end it, which UTF-8 never has, and 0 fill the rest.
  /// Shapes: images [batch, channels, image, image] of float, tokens [batch, sequence] of int64,
  /// to [batch, batch].
  at::Tensor forward(const at::Tensor& images, const at::Tensor& tokens);

 private:
  at::Tensor text_features(const at::Tensor& h, const at::Tensor& tokens);

  PatchEmbedding patches_;
  torch::nn::ModuleList image_layers_;
  torch::nn::LayerNorm image_norm_;
  torch::nn::Linear image_projection_;
  torch::nn::Embedding words_;
  at::Tensor positions_;
  torch::nn::ModuleList text_layers_;
  torch::nn::LayerNorm text_norm_;
  torch::nn::Linear text_projection_;
  at::Tensor scale_;
  std::vector<ItemRange> image_stages_, text_stages_;
  std::int64_t stages_;
};
TORCH_MODULE(Clip);

/// Each image belongs to the text at its own place: the mean of the cross entropies over rows and
/// over columns. Needs no labels. Shapes: logits [batch, batch].
[[nodiscard]] at::Tensor contrastive_loss(const at::Tensor& logits);

}  // namespace stagecraft::examples
