/// Holds the small model of the integration tests, its data and its schedules; LibTorch's module
/// headers stay in models.cc.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/integration/usual_trainer.h"

namespace stagecraft::tests {

inline constexpr int kMicrobatches = 4;

struct ModelOptions {
  int stages = 2;  ///< from 1 to the number of layers
  int microbatches = kMicrobatches;
  double dropout = 0.0;
  bool statistics = true;    ///< batch normalization, which writes its running statistics
  bool steep = false;        ///< a finite loss whose gradient is not a number
  bool linear = false;       ///< layers without activation and shortcut, which compute little
  std::int64_t classes = 5;  ///< another number makes another model
  std::int64_t width = 8;
  bool spare = true;       ///< has parameters that no stage uses
  bool frozen = false;     ///< the embedding and the first half of the layers do not train
  bool tied = false;       ///< the head is the embedding; three of the layers share a block
  bool recompute = false;  ///< of all stages
  int experts = 0;         ///< of each layer, in a region EP; each sees all rows, by its gate
  c10::ScalarType type = c10::ScalarType::Float;  ///< of the weights
  std::vector<std::string> recomputed = {};       ///< instead: the parts of these names
  int layers = 4;
};

/// Classifies tokens 0 to 15: embedding, layers over the stages, batch statistics, head. The
/// weights are the same for every number of stages. No stage uses the parameter "spare".
[[nodiscard]] Program make_program(const ModelOptions& options = {});

struct Data {
  Batch inputs, labels;
};

/// Returns the batch of a step, of 3 rows in each microbatch: the same on every call.
[[nodiscard]] Data data(std::int64_t step, int microbatches = kMicrobatches);

/// Enters that step. Errors: as Trainer::step.
[[nodiscard]] StepFuture step_of(Trainer& trainer, std::int64_t step);

/// Returns tokens of which the last, in the last microbatch, has no embedding: the first stage's
/// operator throws.
[[nodiscard]] Data data_with_bad_token();

/// `name` is "gpipe", "1f1b", or "own": two stages to a row if there are several, all forwards,
/// then all backwards.
[[nodiscard]] Schedule make_schedule(const std::string& name, const Program& program);

/// Returns true if both have the same names and the same bits.
[[nodiscard]] bool same_bits(const StateDict& a, const StateDict& b);

/// Returns a reference's weights as Trainer::state_dict gives them, without "spare".
[[nodiscard]] StateDict weights_of(const Reference& reference);
[[nodiscard]] StateDict without_spare(StateDict weights);

/// Returns a trainer's parameters alone, each once, sorted by name, without "spare"; its buffers
/// likewise.
[[nodiscard]] StateDict weights_of(Trainer& trainer);
[[nodiscard]] StateDict buffers_of(Trainer& trainer);

}  // namespace stagecraft::tests
