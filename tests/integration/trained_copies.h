/// TrainedCopies trains an execution by copies of stages on a cluster of its own. Tests of what
/// copies share compare such runs, and their checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/integration/models.h"

namespace stagecraft::tests {

/// Its layers have 4 blocks of kNormBlock elements each, so that shards end inside of them.
inline constexpr ModelOptions kShardedModel{
    .stages = 2, .dropout = 0.2, .statistics = false, .width = 64};

/// Returns the program of the same model, but its head is the embedding, and several stages share a
/// layer.
[[nodiscard]] Program tied_sharded_program(int stages);

struct TrainedCopies {
  TrainedCopies(Execution execution,
                const Optimizer& optimizer = AdamW{.lr = 1e-2},
                TrainerOptions options = {.clip = 0.1, .seed = 9},
                const std::function<Cluster(int)>& cluster_of = &Cluster::local);

  /// Trains up to this number of steps, and keeps the result of the last.
  void train(std::int64_t until);

  Cluster cluster;
  Trainer trainer;
  StepResult last;
};

using TensorsByName = std::map<std::string, at::Tensor>;

/// Saves a checkpoint there. Returns its tensors.
[[nodiscard]] TensorsByName tensors_saved_by(Trainer& trainer, const std::string& path);

/// Returns whether both have the same names and bits.
[[nodiscard]] bool equal(const TensorsByName& a, const TensorsByName& b);

}  // namespace stagecraft::tests
