/// RankShape holds all data that one rank needs to run its stages from another capture: for
/// microbatches of another shape, or in evaluation mode.
///
/// It is cut out of a JobShape for every rank when a step first needs it. The rank takes it in
/// between two steps.
/// RV-1: like a setup (RU-1), it points at nothing, and its attachments belong to this process
///       alone.
/// RV-2: an evaluation begins with the shape of its first capture, number 0, which has its list.
///       Its other shapes run by that list.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/setup/plan_share.h"
#include "stagecraft/actors/executor/step/step_record.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

struct RankShape {
  Rank rank;
  std::int32_t program = kTraining;  ///< of which this is a shape
  std::int32_t number = 1;           ///< names the shape in orders
  std::uint64_t random = 0;          ///< RandomKey::shape
  StagePrograms stages;              ///< by stage of the rank's list
  PlanShare share;                   ///< of shape 0
};

/// JobShape is a shape in the trainer, for all ranks.
struct JobShape {
  std::int32_t program = kTraining;
  std::int32_t number = 1;
  std::uint64_t random = 0;
  std::shared_ptr<const std::vector<StageProgram>> stages;  ///< by id
  std::shared_ptr<const Plan> plan;                         ///< of shape 0, null for all others
};

/// Returns the part of the shape for a rank. `training`: its share of the training plan.
[[nodiscard]] inline RankShape rank_shape(const JobShape& shape, const PlanShare& training) {
  RankShape part{.rank = training.rank.rank,
                 .program = shape.program,
                 .number = shape.number,
                 .random = shape.random,
                 .stages = programs_of(training, *shape.stages, shape.stages),
                 .share = {}};
  if (shape.plan != nullptr) {
    part.share = share_of(shape.plan, part.rank);
  }
  return part;
}

template <class V>
decltype(auto) visit_fields(RankShape& m, V&& v) {
  return v(m.rank, m.program, m.number, m.random, m.stages, m.share);
}

}  // namespace stagecraft
