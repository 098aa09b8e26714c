/// What the constructors of these models share: refusing options, drawing weights, dividing layers.
///
/// LL-1 is kept here: who draws is one module with a number of its own, whatever the cut and the
/// order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "stagecraft/scheduler/balanced_cut.h"

namespace stagecraft::examples {

// Far above any layer's number, so that no two modules share a generator.
inline constexpr std::uint64_t kEmbeddingIndex = 1'000'000;
inline constexpr std::uint64_t kHeadIndex = 2'000'000;

/// Errors: UsageArgument with `message` unless it holds.
void require_option(bool holds, const std::string& message);

/// Errors: UsageArgument unless 1 to `pieces` stages are asked for. `piece` is one of them in words.
void require_stages(std::int64_t stages, std::int64_t pieces, const std::string& piece);

/// Errors: UsageArgument unless `patch` divides `image`.
void require_patches(std::int64_t image, std::int64_t patch);

/// Errors: UsageArgument unless `heads` divide `dim`.
void require_heads(std::int64_t dim, std::int64_t heads);

[[nodiscard]] torch::nn::Linear unbiased(std::int64_t from, std::int64_t to);
[[nodiscard]] torch::nn::LayerNorm layer_norm(std::int64_t dim);

/// Draws every parameter of more than one dimension from a generator of its own for (seed, index):
/// normal, with a deviation of 0.02, or of 1 / sqrt(what an output sums up) where `by_fan_in`.
/// Biases become 0; the weights of norms stay 1.
void draw_weights(torch::nn::Module& module,
                  std::uint64_t seed,
                  std::uint64_t index,
                  bool by_fan_in = false);

/// Balanced by the parameters of each layer, whose products are most of its work.
[[nodiscard]] std::vector<ItemRange> divided(const torch::nn::ModuleList& layers,
                                             std::int64_t stages);

}  // namespace stagecraft::examples
