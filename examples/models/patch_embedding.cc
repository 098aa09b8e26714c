#include "stagecraft/examples/models/patch_embedding.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/examples/models/layer_size.h"

namespace stagecraft::examples {

double token_count(const PatchSizes& sizes) {
  const double side = static_cast<double>(sizes.image) / static_cast<double>(sizes.patch);
  return 1 + side * side;
}

double patch_weights(const PatchSizes& sizes) {
  const auto dim = static_cast<double>(sizes.dim);
  return convolution_weights(
             static_cast<double>(sizes.channels), dim, static_cast<double>(sizes.patch)) +
         dim + token_count(sizes) * dim;
}

PatchEmbeddingImpl::PatchEmbeddingImpl(const PatchSizes& s)
    : patches_(register_module(
          "patches",
          torch::nn::Conv2d(
              torch::nn::Conv2dOptions(s.channels, s.dim, s.patch).stride(s.patch)))) {
  const std::int64_t side = s.image / s.patch;
  class_token_ = register_parameter("class_token", at::zeros({1, 1, s.dim}));
  positions_ = register_parameter("positions", at::zeros({1, 1 + side * side, s.dim}));
}

at::Tensor PatchEmbeddingImpl::forward(const at::Tensor& images) {
  const at::Tensor patches = patches_(images).flatten(2).transpose(1, 2);
  return at::cat({class_token_.expand({images.size(0), -1, -1}), patches}, 1) + positions_;
}

}  // namespace stagecraft::examples
