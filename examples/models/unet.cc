#include "stagecraft/examples/models/unet.h"

#include <cmath>
#include <numbers>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>

#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/examples/models/build_model.h"
#include "stagecraft/examples/models/layer_size.h"
#include "stagecraft/examples/models/unet_block.h"

namespace stagecraft::examples {
namespace {

constexpr double kLongestPeriod = 10000.0;
constexpr double kCosineOffset = 0.008;

std::int64_t time_width(const UnetOptions& o) {
  return 4 * o.width;
}

std::int64_t channels_of(const UnetOptions& o, std::int64_t level) {
  return o.width << level;
}

const UnetOptions& checked(const UnetOptions& o) {
  require_option(o.image >= 1 && o.channels >= 1 && o.blocks >= 1,
                 "every size of a U-Net is at least 1; found a smaller one");
  require_option(o.levels >= 1 && o.levels <= 16,
                 "a U-Net has 1 to 16 levels; found " + std::to_string(o.levels));
  require_option(o.image % (std::int64_t{1} << (o.levels - 1)) == 0,
                 "a level halves the image, without a rest; found an image of " +
                     std::to_string(o.image) + " for " + std::to_string(o.levels) + " levels");
  require_option(
      o.width >= 1 && o.width % kUnetGroups == 0,
      "the width is a multiple of 8, the groups of its norms; found " + std::to_string(o.width));
  require_heads(channels_of(o, o.levels - 1), o.heads);
  require_stages(o.stages, 2 * o.levels * o.blocks + 1, "residual block");
  return o;
}

/// Returns the blocks in the order in which an image meets them.
std::vector<UnetBlockOptions> blocks_of(const UnetOptions& o) {
  const std::int64_t last = o.levels - 1;
  std::vector<UnetBlockOptions> all;
  std::int64_t in = o.width;
  const auto add = [&](UnetSide side, std::int64_t level, bool resample) {
    const std::int64_t out = channels_of(o, level);
    all.push_back({.side = side,
                   .in = side == UnetSide::Up ? in + out : in,
                   .out = out,
                   .time = time_width(o),
                   .heads = level == last ? o.heads : 0,
                   .image = o.image >> level,
                   .resample = resample});
    in = out;
  };
  for (std::int64_t level = 0; level <= last; ++level) {
    for (std::int64_t b = 0; b < o.blocks; ++b) {
      add(UnetSide::Down, level, level < last && b + 1 == o.blocks);
    }
  }
  add(UnetSide::Middle, last, false);
  for (std::int64_t level = last; level >= 0; --level) {
    for (std::int64_t b = 0; b < o.blocks; ++b) {
      add(UnetSide::Up, level, level > 0 && b + 1 == o.blocks);
    }
  }
  return all;
}

/// Calls visit(channels in, channels out, level, resamples) for each block.
template <class Visit>
void for_blocks(const UnetOptions& m, const Visit& visit) {
  double in = as_double(m.width);
  const auto out = [&](std::int64_t level) {
    return as_double(m.width) * std::exp2(as_double(level));
  };
  for (std::int64_t i = 0; i < m.levels * m.blocks; ++i) {
    const std::int64_t level = i / m.blocks;
    visit(in, out(level), level, level + 1 < m.levels && (i + 1) % m.blocks == 0);
    in = out(level);
  }
  visit(in, in, m.levels - 1, false);
  for (std::int64_t i = m.levels * m.blocks - 1; i >= 0; --i) {
    const std::int64_t level = i / m.blocks;
    visit(in + out(level), out(level), level, level > 0 && i % m.blocks == 0);
    in = out(level);
  }
}

}  // namespace

/// Flow holds the values on their way through the blocks.
struct UnetImpl::Flow {
  at::Tensor image, time;
  std::vector<at::Tensor> skips;  ///< the newest at the end
};

UnetImpl::UnetImpl(const UnetOptions& o)
    : in_(register_module("in", convolution(checked(o).channels, o.width))),
      time1_(register_module("time1", torch::nn::Linear(o.width, time_width(o)))),
      time2_(register_module("time2", torch::nn::Linear(time_width(o), time_width(o)))),
      blocks_(register_module("blocks", torch::nn::ModuleList())),
      norm_(nullptr),
      out_(nullptr) {
  draw_weights(*in_, o.seed, kEmbeddingIndex, /*by_fan_in=*/true);
  draw_weights(*time1_, o.seed, kEmbeddingIndex + 1, /*by_fan_in=*/true);
  draw_weights(*time2_, o.seed, kEmbeddingIndex + 2, /*by_fan_in=*/true);
  std::vector<double> places;
  for (const UnetBlockOptions& options : blocks_of(o)) {
    UnetBlock block(options);
    draw_weights(*block, o.seed, static_cast<std::uint64_t>(blocks_->size()), /*by_fan_in=*/true);
    blocks_->push_back(block);
    places.push_back(static_cast<double>(options.image * options.image));
  }
  norm_ = register_module("norm",
                          torch::nn::GroupNorm(torch::nn::GroupNormOptions(kUnetGroups, o.width)));
  out_ = register_module("out", convolution(o.width, o.channels));
  draw_weights(*out_, o.seed, kHeadIndex, /*by_fan_in=*/true);
  const std::int64_t half = o.width / 2;
  frequencies_ = register_buffer("frequencies",
                                 at::exp(at::arange(half, at::kFloat) *
                                         (-std::log(kLongestPeriod) / static_cast<double>(half))));
  blocks_of_stage_ = divided(blocks_, o.stages, places);
}

at::Tensor UnetImpl::embedded_time(const at::Tensor& time) {
  const at::Tensor angle = time.to(at::kFloat).unsqueeze(1) * frequencies_;
  return time2_(at::silu(time1_(at::cat({at::sin(angle), at::cos(angle)}, 1))));
}

void UnetImpl::run(std::size_t i, Flow& flow) {
  auto& block = *blocks_[i]->as<UnetBlock>();
  if (block.side() == UnetSide::Up) {
    flow.image = at::cat({flow.image, flow.skips.back()}, 1);
    flow.skips.pop_back();
  }
  flow.image = block.forward(flow.image, flow.time);
  if (block.side() == UnetSide::Down) {
    flow.skips.push_back(flow.image);
  }
  // A value with two readers has two gradients to add, wherever stages end: keeps UN-1.
  flow.image = block.resamples() ? block.resampled(flow.image) : flow.image.clone();
  flow.time = flow.time.clone();
}

at::Tensor UnetImpl::forward(const at::Tensor& noisy, const at::Tensor& time) {
  Flow flow;
  for (std::size_t s = 0; s < blocks_of_stage_.size(); ++s) {
    stage("stage" + std::to_string(s), [&] {
      flow = s == 0 ? Flow{in_(noisy), embedded_time(time), {}} : flow;
      for (std::size_t i = blocks_of_stage_[s].first; i < blocks_of_stage_[s].second; ++i) {
        run(i, flow);
      }
      const bool last = s + 1 == blocks_of_stage_.size();
      flow.image = last ? out_(at::silu(norm_(flow.image))) : flow.image;
    });
  }
  return flow.image;
}

at::Tensor noise_loss(const at::Tensor& predicted, const at::Tensor& noise) {
  return at::mse_loss(predicted, noise);
}

at::Tensor noised(const at::Tensor& images,
                  const at::Tensor& time,
                  const at::Tensor& noise,
                  std::int64_t steps) {
  require_option(steps >= 1, "a diffusion has at least 1 step; found " + std::to_string(steps));
  constexpr double kQuarter = std::numbers::pi / 2;
  const at::Tensor passed = (time.to(at::kFloat) + 1) / static_cast<double>(steps);
  const at::Tensor angle = (passed + kCosineOffset) * (kQuarter / (1 + kCosineOffset));
  const double first = std::cos(kCosineOffset * kQuarter / (1 + kCosineOffset));
  const at::Tensor left =
      // Share of the image's power.
      (at::cos(angle) / first).square().clamp(0, 1).view({-1, 1, 1, 1});
  return at::sqrt(left) * images + at::sqrt(1 - left) * noise;
}

double weight_bytes(const UnetOptions& m) {
  const double width = as_double(m.width), channels = as_double(m.channels), time = 4 * width;
  double weights = convolution_weights(channels, width, 3) + linear_weights(width, time) +
                   linear_weights(time, time) + 2 * width + convolution_weights(width, channels, 3);
  for_blocks(m, [&](double in, double out, std::int64_t level, bool resamples) {
    weights += 2 * in + 2 * out + convolution_weights(in, out, 3) +
               convolution_weights(out, out, 3) + linear_weights(time, out);
    weights += in == out ? 0 : convolution_weights(in, out, 1);
    weights += level + 1 < m.levels
                   ? 0
                   : 2 * out + linear_weights(out, 3 * out) + linear_weights(out, out);
    weights += resamples ? convolution_weights(out, out, 3) : 0;
  });
  return kBytesOfFloat * weights;
}

double least_activation_bytes(const UnetOptions& m, std::int64_t images) {
  double kept = 0;
  for_blocks(m, [&](double in, double out, std::int64_t level, bool /*resamples*/) {
    const double side = as_double(m.image) / std::exp2(as_double(level));
    // The inputs of the norms and of the convolutions after them.
    kept += side * side * (2 * in + 2 * out);
  });
  return kBytesOfFloat * as_double(images) * kept;
}

}  // namespace stagecraft::examples
