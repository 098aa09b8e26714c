/// Parts of a setup that a test may spoil: each becomes this setup's own.
#pragma once

#include <cstddef>
#include <memory>

#include "stagecraft/actors/executor/setup/rank_setup.h"

namespace stagecraft::testing {

inline RankList& own_list(PlanShare& share) {
  auto own = std::make_shared<RankList>(*share.list);
  share.list = own;
  return *own;
}

inline PlanTables& own_tables(PlanShare& share) {
  auto own = std::make_shared<PlanTables>(*share.tables);
  share.tables = own;
  return *own;
}

inline StageProgram& own_program(StagePrograms& programs, std::size_t stage = 0) {
  auto own = std::make_shared<StageProgram>(*programs[stage]);
  programs[stage] = own;
  return *own;
}

}  // namespace stagecraft::testing
