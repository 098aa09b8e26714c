/// What the constructors of these models share: refusing options, drawing weights, dividing layers.
///
/// Here LL-1 is kept: who draws is one module with a number of its own, whatever the cut and the
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

/// Errors: UsageArgument unless 1 to `pieces` stages are asked for; `piece` is the word for one.
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

/// The layers of each stage. Balanced by the parameters of each layer, whose products are most of
/// its work, times how often an input meets them: once where `uses` is empty.
[[nodiscard]] std::vector<ItemRange> divided(const torch::nn::ModuleList& layers,
                                             std::int64_t stages,
                                             const std::vector<double>& uses = {});

inline constexpr ItemRange kNoLayers{1, 0};  ///< neither begins nor ends at an end of a tower

/// The layers that a stage has of each of two towers.
struct TowerStage {
  ItemRange left = kNoLayers, right = kNoLayers;
};

/// Two towers that wait for nobody: first the stages of the left one, then those of the right one,
/// so that the longest is shortest, then one without layers for what joins them. Two stages: the
/// towers, the right one with what joins them; one: all. `uses` as of divided().
/// Requires: at most a stage for each layer, and one more.
[[nodiscard]] std::vector<TowerStage> divided_towers(const torch::nn::ModuleList& left,
                                                     std::int64_t left_uses,
                                                     const torch::nn::ModuleList& right,
                                                     std::int64_t right_uses,
                                                     std::int64_t stages);

}  // namespace stagecraft::examples
