/// UnetBlock is a residual block of a U-Net that gets the time, with attention if it has heads, and
/// with a layer after it that halves or doubles the image.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

namespace stagecraft::examples {

inline constexpr std::int64_t kUnetGroups = 8;  ///< of every norm

enum class UnetSide : std::uint8_t { Down, Middle, Up };

struct UnetBlockOptions {
  UnetSide side = UnetSide::Middle;
  std::int64_t in = 0, out = 0;  ///< channels
  std::int64_t time = 0;         ///< width of the embedded time
  std::int64_t heads = 0;        ///< 0: no attention
  std::int64_t image = 0;        ///< height and width
  bool resample = false;
};

/// Returns a convolution of 3 by 3 places. The result is as large as its image, divided by the
/// stride.
[[nodiscard]] torch::nn::Conv2d convolution(std::int64_t in,
                                            std::int64_t out,
                                            std::int64_t stride = 1);

class UnetBlockImpl : public torch::nn::Module {
 public:
  explicit UnetBlockImpl(const UnetBlockOptions& options);

  /// Shapes: x [batch, in, image, image], time [batch, time], to [batch, out, image, image].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& time);

  /// Returns x of half or twice its height and width. Requires: resamples().
  at::Tensor resampled(const at::Tensor& x);

  [[nodiscard]] bool resamples() const { return options_.resample; }
  [[nodiscard]] UnetSide side() const { return options_.side; }

 private:
  at::Tensor attended(const at::Tensor& x);

  UnetBlockOptions options_;
  torch::nn::GroupNorm norm1_, norm2_, norm3_;
  torch::nn::Conv2d conv1_, conv2_, shortcut_, qkv_, attention_, resample_;
  torch::nn::Linear time_;
};
TORCH_MODULE(UnetBlock);

}  // namespace stagecraft::examples
