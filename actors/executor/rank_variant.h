/// RankVariant: what one rank must know to run microbatches of another shape: its stages as they
/// were captured for it.
///
/// Cut out of a Variant for every rank when a step needs it first; taken in between two steps.
/// RV-1: as RU-1: it points at nothing, and has the attachments of this process alone.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

struct RankVariant {
  Rank rank;
  std::int32_t number = 1;           ///< by which orders name it
  std::uint64_t random = 0;          ///< RandomKey::shape
  std::vector<StageProgram> stages;  ///< this rank's, ascending
};

/// What a trainer has its ranks know.
struct JobVariant {
  std::int32_t number = 1;
  std::uint64_t random = 0;
  std::vector<StageProgram> stages;  ///< laid out for the schedule's replicas, by id
};

/// The part of it that `list`, one of the job's plan, runs.
[[nodiscard]] inline RankVariant rank_variant(const JobVariant& variant, const RankPlan& list) {
  RankVariant part{
      .rank = list.rank, .number = variant.number, .random = variant.random, .stages = {}};
  for (const StageId stage : list.stages) {
    part.stages.push_back(variant.stages[stage.index()]);
  }
  return part;
}

template <class V>
decltype(auto) visit_fields(RankVariant& m, V&& v) {
  return v(m.rank, m.number, m.random, m.stages);
}

}  // namespace stagecraft
