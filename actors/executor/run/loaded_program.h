/// LoadedProgram is a program that a rank has loaded: one list, and the stages for every shape of
/// microbatches that the rank got.
///
/// The executor has one for training, and one for each evaluation.
/// LD-1: nothing in it moves while a step may run, since list and stages are viewed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/run/loaded_plan.h"
#include "stagecraft/actors/executor/setup/rank_shape.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"

namespace stagecraft {

/// LoadedShape holds the stages for one shape.
struct LoadedShape {
  RankShape received;                ///< empty for the shape of the rank's setup
  std::vector<StageRuntime> stages;  ///< ascending
};

struct LoadedProgram {
  std::map<std::int32_t, LoadedShape> shapes;  ///< by number; 0 is the captured shape
  std::unique_ptr<LoadedPlan> plan;

  [[nodiscard]] std::vector<StageRuntime>& stages() { return shapes.at(0).stages; }
};

}  // namespace stagecraft
