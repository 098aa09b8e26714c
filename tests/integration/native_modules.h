/// Holds a model with a native stage, for native_stage_test.cc and the workers it starts.
#pragma once

#include <memory>
#include <stdexcept>
#include <tuple>

#include <torch/torch.h>

#include "stagecraft/compiler/native/native_stage.h"

namespace stagecraft::tests {

inline constexpr std::int64_t kNativeWidth = 6;

/// Applies a layer as often as its values ask for, and counts how often in a buffer.
struct Loop : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(kNativeWidth, kNativeWidth))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(kNativeWidth))};
  at::Tensor turns = register_buffer("turns", torch::zeros({}, torch::kLong));

  std::tuple<at::Tensor, at::Tensor> forward(at::Tensor x, at::Tensor first) {
    if (!x.isfinite().all().item<bool>()) {
      throw std::runtime_error("the loop would not end");
    }
    at::Tensor h = norm(x);
    for (int turn = 0; turn < 2 + static_cast<int>(10 * x.abs().sum().item<float>()) % 4; ++turn) {
      h = torch::tanh(layer(h)) + first;
      turns += is_training() ? 1 : 0;
    }
    return {h, h * x};
  }
};

/// Returns a tensor whose size depends on values.
struct Selecting : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return x.index({x.select(1, 0) > 0}); }
};
struct Drawing : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return torch::dropout(x, 0.5, /*train=*/true); }
};
struct Writing : torch::nn::Module {
  at::Tensor forward(at::Tensor x) { return x.detach().mul_(2) + x; }
};
struct Wider : torch::nn::Module {
  explicit Wider(std::int64_t width)
      : layer(register_module("layer", torch::nn::Linear(kNativeWidth, width))) {}
  at::Tensor forward(at::Tensor x) { return layer(x); }
  torch::nn::Linear layer;
};

/// Returns twice as many rows for values above 10.
struct Growing : torch::nn::Module {
  at::Tensor forward(at::Tensor x) {
    return x.max().item<float>() > 10 ? torch::cat({x, x}) : x * 1;
  }
};
/// Scales the inputs of the model, and decays the scale.
struct Decay : torch::nn::Module {
  at::Tensor scale = register_buffer("scale", torch::ones({kNativeWidth}));
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(kNativeWidth, kNativeWidth))};
  at::Tensor forward(at::Tensor x) {
    const at::Tensor made = torch::tanh(layer(x)) * scale.clone();
    scale.mul_(0.9);
    return made;
  }
};

/// Doubles, with another gradient than that of doubling.
struct Doubled : torch::autograd::Function<Doubled> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               const torch::autograd::tensor_list& gradients) {
    return {gradients[0] * 0.5};
  }
};
/// Has a custom function and a hook on its result.
struct Custom : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(kNativeWidth, kNativeWidth))};
  at::Tensor forward(at::Tensor x) {
    at::Tensor h = Doubled::apply(layer(x));
    if (h.requires_grad()) {
      h.register_hook([](const at::Tensor& gradient) { return gradient * 3; });
    }
    return h;
  }
};

inline void register_native_modules() {
  register_native_stage("custom", [] { return std::make_shared<Custom>(); });
  register_native_stage("loop", [] { return std::make_shared<Loop>(); });
  register_native_stage("selecting", [] { return std::make_shared<Selecting>(); });
  register_native_stage("drawing", [] { return std::make_shared<Drawing>(); });
  register_native_stage("writing", [] { return std::make_shared<Writing>(); });
  register_native_stage("wider", [] { return std::make_shared<Wider>(kNativeWidth + 1); });
  register_native_stage("growing", [] { return std::make_shared<Growing>(); });
  register_native_stage("decay", [] { return std::make_shared<Decay>(); });
  register_native_stage("nothing", [] { return std::shared_ptr<Writing>(); });
}

}  // namespace stagecraft::tests
