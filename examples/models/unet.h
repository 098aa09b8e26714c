/// Unet is the noise predictor of a diffusion model, with its pipeline stages marked.
///
/// Its blocks lead down, through the middle and up again. The output of a residual block on the way
/// down goes to its counterpart on the way up, over all the stages between. Every block gets the
/// time. Its weights keep LL-1; only `forward` knows about stages.
///
/// UN-1: the gradients of a value are added in one order for every cut: no value has more than two
///       readers, except several within one block. The time is passed on from block to block.
///
///     down 0 ------------------------> up 0
///        down 1 ---------------> up 1            2 * levels * blocks + 1 blocks: a stage is a
///           down 2 ------> up 2                  row of them
///                  middle
///
/// Sources: Ho et al., "Denoising Diffusion Probabilistic Models" (2020), section 3 and appendix B;
/// Nichol and Dhariwal, "Improved Denoising Diffusion Probabilistic Models" (2021), equation 17,
/// for the schedule of noise. The way up is half as wide as theirs: one skip per block.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

namespace stagecraft::examples {

/// UnetOptions says how large a U-Net is, and how it is cut.
struct UnetOptions {
  std::int64_t image = 32;  ///< height and width; halved `levels` - 1 times without remainder
  std::int64_t channels = 3;
  std::int64_t width =
      32;  ///< channels of the first level, twice as many each level on; 8 divides it
  std::int64_t levels = 3;
  std::int64_t blocks = 1;  ///< residual blocks of a level, on the way down and on the way up
  std::int64_t heads = 4;   ///< of the attention at the lowest level; divides its channels
  std::int64_t stages = 4;  ///< at most 2 * levels * blocks + 1: a stage holds a residual block
  std::uint64_t seed = 0;
};

/// Returns the bytes of all parameters, before the model is built. In double, so that a size beyond
/// 64 bits is refused and not mistaken for a small one.
[[nodiscard]] double weight_bytes(const UnetOptions& model);

/// Returns a lower bound of the bytes that the forward of a microbatch keeps for its backward: the
/// operands of its matrix products and convolutions. `images`: in the microbatch.
[[nodiscard]] double least_activation_bytes(const UnetOptions& model, std::int64_t images);

class UnetImpl : public torch::nn::Module {
 public:
  /// Errors: UsageArgument if `options` breaks the requirements in its comments.
  explicit UnetImpl(const UnetOptions& options);

  /// Returns the predicted noise. Shapes: noisy [batch, channels, image, image] of float, time
  /// [batch] of int64 or float, to the shape of noisy.
  at::Tensor forward(const at::Tensor& noisy, const at::Tensor& time);

 private:
  struct Flow;
  at::Tensor embedded_time(const at::Tensor& time);
  void run(std::size_t block, Flow& flow);

  torch::nn::Conv2d in_;
  torch::nn::Linear time1_, time2_;
  torch::nn::ModuleList blocks_;
  torch::nn::GroupNorm norm_;
  torch::nn::Conv2d out_;
  at::Tensor frequencies_;
  std::vector<ItemRange> blocks_of_stage_;
};
TORCH_MODULE(Unet);

/// Returns the mean squared error. Shapes: as images.
[[nodiscard]] at::Tensor noise_loss(const at::Tensor& predicted, const at::Tensor& noise);

/// Returns images at `time` of a diffusion that ends in pure `noise` at time `steps` - 1, by the
/// cosine schedule. Shapes: images and noise [batch, channels, image, image], time [batch] of int64
/// or float.
[[nodiscard]] at::Tensor noised(const at::Tensor& images,
                                const at::Tensor& time,
                                const at::Tensor& noise,
                                std::int64_t steps);

}  // namespace stagecraft::examples
