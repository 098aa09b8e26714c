/// Moe is a sparsely gated mixture of experts in the blocks of a Llama, with its pipeline stages
/// marked.
///
/// Attention, norms and rotary embedding are the Llama's. In each layer a router picks two experts
/// for a token, each with a SwiGLU. Its weights keep LL-1; only `forward` knows about stages.
///
/// MX-1: no shape depends on values. Experts have a fixed number of places for the tokens of a
///       microbatch. First choices come before second ones, earlier tokens before later ones. A
///       choice that finds no place is dropped, and its token continues with its other choice and
///       the residual.
/// MX-2: the sum of the load-balance losses is passed on from layer to layer, so that no cut
///       changes it.
///
/// Sources: Shazeer et al., "Outrageously Large Neural Networks" (2017); Lepikhin et al., "GShard"
/// (2021), algorithm 1, without its random dispatch; Fedus et al., "Switch Transformers" (2022),
/// equation 4, for the load-balance loss.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "stagecraft/examples/models/llama.h"
#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

namespace stagecraft::examples {

/// MoeOptions says how large a mixture of experts is, and how it is cut.
struct MoeOptions {
  std::int64_t vocabulary = 256;
  std::int64_t layers = 4;
  std::int64_t dim = 128;
  std::int64_t heads = 4;  ///< divides dim; dim / heads is even (the rotary embedding turns pairs)
  std::int64_t ffn = 344;  ///< width of the SwiGLU of each expert
  std::int64_t experts = 4;  ///< of each layer, at least 2
  /// An expert takes this many times its even share of a microbatch's choices, two per token.
  double capacity_factor = 1.25;
  double balance = 0.01;       ///< weight of the load-balance loss
  std::int64_t sequence = 64;  ///< tokens per sequence, fixed
  std::int64_t stages = 4;     ///< at most `layers`
  std::uint64_t seed = 0;
};

/// Returns the bytes of all parameters, before the model is built. In double, so that a size beyond
/// 64 bits is refused and not mistaken for a small one.
[[nodiscard]] double weight_bytes(const MoeOptions& model);

/// Returns the part of these that belongs to experts.
[[nodiscard]] double expert_bytes(const MoeOptions& model);

/// Returns a lower bound of the bytes that the forward of a microbatch keeps for its backward: the
/// operands of its matrix products. `sequences`: in the microbatch.
[[nodiscard]] double least_activation_bytes(const MoeOptions& model, std::int64_t sequences);

/// Routing says where the tokens of a microbatch go.
struct Routing {
  at::Tensor combine;  ///< [tokens, experts, capacity]: the weight of the expert's answer, or 0
  at::Tensor balance;  ///< []: the load-balance loss, 1 if all experts are chosen evenly
};

/// Returns how many places an expert has for a microbatch of so many tokens.
[[nodiscard]] std::int64_t expert_capacity(std::int64_t tokens,
                                           std::int64_t experts,
                                           double capacity_factor);

/// Sends each token to the two experts of largest probability. Keeps MX-1. Their weights are these
/// probabilities, scaled to sum to 1 before any is dropped. Shapes: probabilities [tokens,
/// experts].
[[nodiscard]] Routing route(const at::Tensor& probabilities, std::int64_t capacity);

class MoeFeedForwardImpl : public torch::nn::Module {
 public:
  explicit MoeFeedForwardImpl(const MoeOptions& options);
  /// Returns the experts' answers and the load-balance loss. Shapes: [batch, sequence, dim] to the
  /// same, and [].
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& x);

 private:
  std::int64_t experts_;
  double capacity_factor_;
  torch::nn::Linear router_;
  at::Tensor gate_, up_, down_;
};
TORCH_MODULE(MoeFeedForward);

class MoeLayerImpl : public torch::nn::Module {
 public:
  explicit MoeLayerImpl(const MoeOptions& options);
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& x,
                                            const at::Tensor& cos,
                                            const at::Tensor& sin);

 private:
  RmsNorm norm1_, norm2_;
  LlamaAttention attention_;
  MoeFeedForward experts_;
};
TORCH_MODULE(MoeLayer);

class MoeImpl : public torch::nn::Module {
 public:
  /// Errors: UsageArgument if `options` breaks the requirements in its comments.
  explicit MoeImpl(const MoeOptions& options);

  /// Returns the logits and the sum of the layers' load-balance losses. Shapes: tokens [batch,
  /// sequence] of int64 to [batch, sequence, vocabulary] and [].
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& tokens);

 private:
  torch::nn::Embedding embed_;
  torch::nn::ModuleList layers_;
  RmsNorm norm_;
  torch::nn::Linear head_;
  at::Tensor cos_, sin_;
  std::vector<ItemRange> layers_of_stage_;
};
TORCH_MODULE(Moe);

/// MoeLoss is the mean cross entropy of every position, plus `balance` times the load-balance loss.
/// For compile's `loss`: moe_loss(options.balance).
class MoeLoss {
 public:
  explicit MoeLoss(double balance) : balance_(balance) {}
  /// Shapes: logits [batch, sequence, vocabulary], balance [], targets [batch, sequence].
  at::Tensor operator()(const at::Tensor& logits,
                        const at::Tensor& balance,
                        const at::Tensor& targets) const;

 private:
  double balance_;
};
[[nodiscard]] inline MoeLoss moe_loss(double balance) {
  return MoeLoss(balance);
}

}  // namespace stagecraft::examples
