#include "stagecraft/tests/integration/trained_copies.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/equal.h>

#include "stagecraft/actors/trainer/state/checkpoint.h"

namespace stagecraft::tests {

Program tied_sharded_program(int stages) {
  ModelOptions model = kShardedModel;
  model.tied = true;
  model.stages = stages;
  return make_program(model);
}

TrainedCopies::TrainedCopies(Execution execution,
                             const Optimizer& optimizer,
                             TrainerOptions options,
                             const std::function<Cluster(int)>& cluster_of)
    : cluster(cluster_of(execution.layout.ranks())),
      trainer(cluster, std::move(execution), optimizer, std::move(options)) {}

void TrainedCopies::train(std::int64_t until) {
  while (trainer.steps() < until) {
    last = step_of(trainer, trainer.steps()).get();
  }
}

TensorsByName tensors_saved_by(Trainer& trainer, const std::string& path) {
  trainer.save(path);
  TensorsByName all;
  for (const StateTensor& state : read_checkpoint(path).tensors) {
    all.emplace(state.name, state.tensor);
  }
  return all;
}

bool equal(const TensorsByName& a, const TensorsByName& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && at::equal(x.second, y.second);
  });
}

}  // namespace stagecraft::tests
