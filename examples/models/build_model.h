/// build_model holds the parts that the constructors of these models share: refusing options,
/// drawing weights, dividing layers.
///
/// It keeps LL-1: each module with weights to draw has a number of its own, for every cut and
/// order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

namespace stagecraft::examples {

// These are far above any layer's number, so that no two modules share a generator.
inline constexpr std::uint64_t kEmbeddingIndex = 1'000'000;
inline constexpr std::uint64_t kHeadIndex = 2'000'000;

/// Checks an option. Errors: UsageArgument with `message` unless `holds`.
void require_option(bool holds, const std::string& message);

/// Checks stages. Errors: UsageArgument unless 1 to `pieces` stages are requested; `piece` is the
/// word for one.
void require_stages(std::int64_t stages, std::int64_t pieces, const std::string& piece);

/// Checks patches. Errors: UsageArgument unless `patch` divides `image`.
void require_patches(std::int64_t image, std::int64_t patch);

/// Checks heads. Errors: UsageArgument unless `heads` divide `dim`.
void require_heads(std::int64_t dim, std::int64_t heads);

[[nodiscard]] torch::nn::Linear unbiased(std::int64_t from, std::int64_t to);
[[nodiscard]] torch::nn::LayerNorm layer_norm(std::int64_t dim);

/// Draws every parameter of more than one dimension from a generator of its own for (seed, index):
/// normal, with a deviation of 0.02, or of 1 / sqrt(number of terms that an output sums up) if
/// `by_fan_in`. Biases become 0; the weights of norms stay 1.
void draw_weights(torch::nn::Module& module,
                  std::uint64_t seed,
                  std::uint64_t index,
                  bool by_fan_in = false);

/// Returns the layers of each stage. They are balanced by the parameters of each layer, whose
/// products are most of its work, times how often an input meets them. If `uses` is empty, that is
/// once.
[[nodiscard]] std::vector<ItemRange> divided(const torch::nn::ModuleList& layers,
                                             std::int64_t stages,
                                             const std::vector<double>& uses = {});

inline constexpr ItemRange kNoLayers{1, 0};  ///< neither the begin nor the end of a tower

/// TowerStage holds the layers that a stage has of each of two towers.
struct TowerStage {
  ItemRange left = kNoLayers, right = kNoLayers;
};

/// Divides two independent towers: first the stages of the left one, then those of the right one,
/// such that the longest stage is as short as possible, then a stage without layers for the part
/// that joins them. With two stages each has a tower, and the right one also has the joining part;
/// one stage has everything. `uses` as in divided().
/// Requires: at most a stage for each layer, and one more.
[[nodiscard]] std::vector<TowerStage> divided_towers(const torch::nn::ModuleList& left,
                                                     std::int64_t left_uses,
                                                     const torch::nn::ModuleList& right,
                                                     std::int64_t right_uses,
                                                     std::int64_t stages);

}  // namespace stagecraft::examples
