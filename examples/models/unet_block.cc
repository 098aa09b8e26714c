#include "stagecraft/examples/models/unet_block.h"

#include <vector>

#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/upsample_nearest2d.h>

namespace stagecraft::examples {
namespace {

torch::nn::GroupNorm group_norm(std::int64_t channels) {
  return torch::nn::GroupNorm(torch::nn::GroupNormOptions(kUnetGroups, channels));
}

/// Returns a matrix product at every place of the image.
torch::nn::Conv2d projection(std::int64_t in, std::int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1));
}

}  // namespace

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1));
}

UnetBlockImpl::UnetBlockImpl(const UnetBlockOptions& o)
    : options_(o),
      norm1_(register_module("norm1", group_norm(o.in))),
      norm2_(register_module("norm2", group_norm(o.out))),
      norm3_(nullptr),
      conv1_(register_module("conv1", convolution(o.in, o.out))),
      conv2_(register_module("conv2", convolution(o.out, o.out))),
      shortcut_(nullptr),
      qkv_(nullptr),
      attention_(nullptr),
      resample_(nullptr),
      time_(register_module("time", torch::nn::Linear(o.time, o.out))) {
  if (o.in != o.out) {
    shortcut_ = register_module("shortcut", projection(o.in, o.out));
  }
  if (o.heads > 0) {
    norm3_ = register_module("norm3", group_norm(o.out));
    qkv_ = register_module("qkv", projection(o.out, 3 * o.out));
    attention_ = register_module("attention", projection(o.out, o.out));
  }
  if (o.resample) {
    resample_ =
        register_module("resample", convolution(o.out, o.out, o.side == UnetSide::Down ? 2 : 1));
  }
}

at::Tensor UnetBlockImpl::forward(const at::Tensor& x, const at::Tensor& time) {
  at::Tensor h = conv1_(at::silu(norm1_(x)));
  h = h + time_(at::silu(time)).unsqueeze(-1).unsqueeze(-1);
  h = conv2_(at::silu(norm2_(h))) + (shortcut_ ? shortcut_(x) : x);
  return options_.heads > 0 ? h + attended(h) : h;
}

at::Tensor UnetBlockImpl::attended(const at::Tensor& x) {
  const std::int64_t batch = x.size(0), channels = x.size(1), places = x.size(2) * x.size(3);
  // Split before transposing: the gradients are then joined in the layout of the view.
  const std::vector<at::Tensor> qkv =
      qkv_(norm3_(x)).view({batch, 3, options_.heads, channels / options_.heads, places}).unbind(1);
  const at::Tensor y = at::scaled_dot_product_attention(
      qkv[0].transpose(-1, -2), qkv[1].transpose(-1, -2), qkv[2].transpose(-1, -2));
  return attention_(y.transpose(-1, -2).reshape_as(x));
}

at::Tensor UnetBlockImpl::resampled(const at::Tensor& x) {
  const std::int64_t twice = 2 * options_.image;
  return resample_(options_.side == UnetSide::Up ? at::upsample_nearest2d(x, {twice, twice}) : x);
}

}  // namespace stagecraft::examples
