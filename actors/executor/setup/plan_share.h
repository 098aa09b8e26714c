/// PlanShare is the part of a plan that one rank runs: its list, the tables for the list's numbers,
/// and its stages.
///
/// It is cut out of a Plan for every rank. Ranks of a process share list, tables and programs.
#pragma once

#include <memory>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// StagePrograms holds programs by stage of a list.
using StagePrograms = std::vector<std::shared_ptr<const StageProgram>>;

struct PlanShare {
  RankPlan rank;
  std::shared_ptr<const PlanTables> tables = std::make_shared<PlanTables>();
  std::shared_ptr<const RankList> list = std::make_shared<RankList>();

  /// Returns the stage at a position in the list's stages.
  [[nodiscard]] const PlanStage& stage(std::size_t position) const {
    return tables->stages[list->stages[position].index()];
  }
};

[[nodiscard]] std::vector<const StageProgram*> pointers_to(const StagePrograms& programs);

/// Returns the share of a rank. Requires: the plan has the rank.
[[nodiscard]] PlanShare share_of(const std::shared_ptr<const Plan>& plan, Rank rank);

/// Returns the programs of the stages of a rank. `programs`: those of the whole program, by id.
/// `owner` keeps them alive.
[[nodiscard]] StagePrograms programs_of(const PlanShare& share,
                                        const std::vector<StageProgram>& programs,
                                        const std::shared_ptr<const void>& owner);

template <class V>
decltype(auto) visit_fields(PlanShare& m, V&& v) {
  return v(m.rank, m.tables, m.list);
}

}  // namespace stagecraft
