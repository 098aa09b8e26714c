/// RankVariant: what one rank must know to run its stages as they were captured once more: for
/// microbatches of another shape, or in evaluation mode.
///
/// Cut out of a JobVariant for every rank when a step needs it first; taken in between two steps.
/// RV-1: as RU-1: it points at nothing, and has the attachments of this process alone.
/// RV-2: an evaluation begins with the shape it was captured for first, number 0, which has its
///       list; its other shapes run by that list.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/step_record.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

struct RankVariant {
  Rank rank;
  std::int32_t program = kTraining;  ///< of which this is a shape
  std::int32_t number = 1;           ///< by which orders name the shape
  std::uint64_t random = 0;          ///< RandomKey::shape
  std::vector<StageProgram> stages;  ///< this rank's, ascending
  RankPlan list;                     ///< of shape 0
};

/// What a trainer has its ranks know.
struct JobVariant {
  std::int32_t program = kTraining;
  std::int32_t number = 1;
  std::uint64_t random = 0;
  std::vector<StageProgram> stages;  ///< laid out for the schedule's replicas, by id
  std::shared_ptr<const Plan> plan;  ///< of shape 0, null for all others
};

/// The part of it that is `rank`'s. `held`: its stages.
[[nodiscard]] inline RankVariant rank_variant(const JobVariant& variant,
                                              Rank rank,
                                              const std::vector<StageId>& held) {
  RankVariant part{.rank = rank,
                   .program = variant.program,
                   .number = variant.number,
                   .random = variant.random,
                   .stages = {},
                   .list = {}};
  for (const StageId stage : held) {
    part.stages.push_back(variant.stages[stage.index()]);
  }
  if (variant.plan != nullptr) {
    part.list = variant.plan->ranks[rank.index()];
  }
  return part;
}

template <class V>
decltype(auto) visit_fields(RankVariant& m, V&& v) {
  return v(m.rank, m.program, m.number, m.random, m.stages, m.list);
}

}  // namespace stagecraft
