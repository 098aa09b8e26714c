/// Holds small modules for tests: one per shape of stage graph that a compiler must cut.
#pragma once

#include <torch/torch.h>

#include "stagecraft/compiler/module/markers.h"

namespace stagecraft::testing {

/// Is a perceptron with a skip connection: first -> middle -> last, and first -> last.
struct SkipNet : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  SkipNet() {
    a = register_module("a", torch::nn::Linear(6, 8));
    b = register_module("b", torch::nn::Linear(8, 8));
    c = register_module("c", torch::nn::Linear(8, 3));
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] { return torch::gelu(a(x)); });
    const auto m = stage("middle", [&] { return torch::tanh(b(h)); });
    return stage("last", [&] { return c(h + m); });
  }
};

/// Has two independent encoders and a head.
struct TwoTowers : torch::nn::Module {
  torch::nn::Linear image{nullptr}, text{nullptr}, head{nullptr};
  TwoTowers() {
    image = register_module("image", torch::nn::Linear(6, 8));
    text = register_module("text", torch::nn::Linear(5, 8));
    head = register_module("head", torch::nn::Linear(16, 3));
  }
  torch::Tensor forward(torch::Tensor i, torch::Tensor t) {
    const auto a = stage("image", [&] { return torch::relu(image(i)); });
    const auto b = stage("text", [&] { return torch::relu(text(t)); });
    return stage("head", [&] { return head(torch::cat({a, b}, 1)); });
  }
};

/// Is a chain of `stages` linear layers of equal width.
struct Chain : torch::nn::Module {
  std::vector<torch::nn::Linear> layers;
  explicit Chain(int stages, int width = 8) {
    for (int s = 0; s < stages; ++s) {
      layers.push_back(
          register_module("layer" + std::to_string(s), torch::nn::Linear(width, width)));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t s = 0; s < layers.size(); ++s) {
      x = stage("s" + std::to_string(s), [&] { return torch::tanh(layers[s](x)); });
    }
    return x;
  }
};

/// Is a chain of different stages: some have nothing to train, or pass no gradient on.
struct MixedChain : torch::nn::Module {
  enum class Kind {
    Trained,
    Frozen,   ///< its weights do not train, gradients pass
    Unused,   ///< no stage reads its result
    Indices,  ///< makes integers
    Mask,     ///< makes booleans
    NoGrad,   ///< runs without gradients
  };
  std::vector<Kind> kinds;
  std::vector<torch::nn::Linear> layers;
  explicit MixedChain(std::vector<Kind> of_stages, int width = 8) : kinds(std::move(of_stages)) {
    for (std::size_t s = 0; s < kinds.size(); ++s) {
      layers.push_back(
          register_module("layer" + std::to_string(s), torch::nn::Linear(width, width)));
      for (auto& parameter : layers.back()->parameters()) {
        parameter.requires_grad_(kinds[s] != Kind::Frozen);
      }
    }
  }
  /// Takes the result of the stage before, of any kind.
  torch::Tensor layer(std::size_t s, const torch::Tensor& x) {
    if (x.scalar_type() == torch::kLong) {
      return torch::tanh(torch::embedding(layers[s]->weight, x) + layers[s]->bias);
    }
    return torch::tanh(layers[s](x.scalar_type() == torch::kBool ? x.to(torch::kFloat) : x));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t s = 0; s < kinds.size(); ++s) {
      const torch::Tensor made = stage("s" + std::to_string(s), [&] {
        switch (kinds[s]) {
          case Kind::Indices:
            return layer(s, x).argmax(1);
          case Kind::Mask:
            return layer(s, x) > 0;
          case Kind::NoGrad: {
            const torch::NoGradGuard guard;
            return layer(s, x);
          }
          default:
            return layer(s, x);
        }
      });
      x = kinds[s] == Kind::Unused ? x : made;
    }
    return x;
  }
};

/// Is a chain whose stages share tensors. The first and the last share a matrix; these and the
/// middle stage share a layer; one parameter trains in the last and is read without a gradient in
/// the first; every stage reads a parameter that does not train, and a buffer.
struct TiedChain : torch::nn::Module {
  std::vector<torch::nn::Linear> layers;
  torch::nn::Linear block{nullptr};
  torch::Tensor matrix, seen, frozen, scale;
  bool bare;  ///< the first stage only reads
  explicit TiedChain(int stages, bool bare_first = false, int width = 8) : bare(bare_first) {
    for (int s = 0; s < stages; ++s) {
      layers.push_back(
          register_module("layer" + std::to_string(s), torch::nn::Linear(width, width)));
    }
    block = register_module("block", torch::nn::Linear(width, width));
    matrix = register_parameter("matrix", torch::randn({width, width}) / 3);
    seen = register_parameter("seen", torch::randn({width}));
    frozen = register_parameter("frozen", torch::rand({width}) + 0.5, /*requires_grad=*/false);
    scale = register_buffer("scale", torch::rand({width}) + 0.5);
  }
  torch::Tensor run(std::size_t s, torch::Tensor x) {
    const bool first = s == 0;
    const bool last = s + 1 == layers.size();
    if (first) {
      x = x * seen.detach() * frozen;
      if (bare) {
        return x * scale;
      }
      x = torch::linear(x, matrix);
    }
    x = torch::tanh(layers[s](x) * frozen * scale);
    if (first || last || s == layers.size() / 2) {
      x = x + torch::tanh(block(x));
    }
    return last ? torch::linear(x, matrix.t(), seen) : x;
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t s = 0; s < layers.size(); ++s) {
      x = stage("s" + std::to_string(s), [&] { return run(s, x); });
    }
    return x;
  }
};

inline torch::Tensor mean_square(torch::Tensor output, torch::Tensor label) {
  return (output - label).pow(2).mean();
}

}  // namespace stagecraft::testing
