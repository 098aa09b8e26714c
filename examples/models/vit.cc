#include "stagecraft/examples/models/vit.h"

#include <string>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>

#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/examples/models/build_model.h"
#include "stagecraft/examples/models/layer_size.h"
#include "stagecraft/examples/models/transformer_block.h"

namespace stagecraft::examples {
namespace {

const VitOptions& checked(const VitOptions& o) {
  require_option(o.channels >= 1 && o.classes >= 1 && o.layers >= 1 && o.dim >= 1 && o.ffn >= 1,
                 "every size of a ViT is at least 1; found a smaller one");
  require_patches(o.image, o.patch);
  require_heads(o.dim, o.heads);
  require_option(o.dropout >= 0 && o.dropout < 1,
                 "dropout is from 0 to below 1; found " + std::to_string(o.dropout));
  require_stages(o.stages, o.layers, "layer");
  return o;
}

}  // namespace

VitImpl::VitImpl(const VitOptions& o)
    : embed_(register_module(
          "embed", PatchEmbedding(PatchSizes{checked(o).image, o.patch, o.channels, o.dim}))),
      layers_(register_module("layers", torch::nn::ModuleList())),
      norm_(nullptr),
      head_(nullptr),
      dropout_(o.dropout) {
  draw_weights(*embed_, o.seed, kEmbeddingIndex);
  for (std::int64_t i = 0; i < o.layers; ++i) {
    TransformerBlock layer(
        BlockOptions{.dim = o.dim, .heads = o.heads, .ffn = o.ffn, .dropout = o.dropout});
    draw_weights(*layer, o.seed, static_cast<std::uint64_t>(i));
    layers_->push_back(layer);
  }
  norm_ = register_module("norm", layer_norm(o.dim));
  head_ = register_module("head", torch::nn::Linear(o.dim, o.classes));
  draw_weights(*head_, o.seed, kHeadIndex);
  layers_of_stage_ = divided(layers_, o.stages);
}

at::Tensor VitImpl::embedded(const at::Tensor& images) {
  const at::Tensor h = embed_(images);
  return dropout_ > 0 ? at::dropout(h, dropout_, is_training()) : h;
}

at::Tensor VitImpl::forward(const at::Tensor& images) {
  const auto& ranges = layers_of_stage_;
  at::Tensor x = images;
  for (std::size_t s = 0; s < ranges.size(); ++s) {
    stage("stage" + std::to_string(s), [&] {
      x = s == 0 ? embedded(x) : x;
      for (std::size_t i = ranges[s].first; i < ranges[s].second; ++i) {
        x = layers_[i]->as<TransformerBlock>()->forward(x);
      }
      x = s + 1 == ranges.size() ? head_(norm_(x).select(1, 0)) : x;
    });
  }
  return x;
}

at::Tensor classification_loss(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels);
}

double weight_bytes(const VitOptions& m) {
  const double dim = as_double(m.dim);
  return kBytesOfFloat * (patch_weights({m.image, m.patch, m.channels, m.dim}) +
                          as_double(m.layers) * block_weights(dim, as_double(m.ffn)) + 2 * dim +
                          linear_weights(dim, as_double(m.classes)));
}

double least_activation_bytes(const VitOptions& m, std::int64_t images) {
  return kBytesOfFloat * as_double(images) * token_count({m.image, m.patch, m.channels, m.dim}) *
         as_double(m.layers) * kept_by_block(as_double(m.dim), as_double(m.ffn));
}

}  // namespace stagecraft::examples
