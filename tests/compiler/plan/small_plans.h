/// Small plans for tests of lowering and of the rules.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::testing {

inline Program chain_program(int stages, int microbatches) {
  Chain module(stages);
  const auto x = torch::randn({2 * microbatches, 8});
  return compile(module,
                 {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = microbatches});
}

inline Program tied_program(int stages, int microbatches) {
  TiedChain module(stages);
  const auto x = torch::randn({2 * microbatches, 8});
  return compile(module,
                 {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = microbatches});
}

inline const Schedule& two_by_two() {
  static const Schedule schedule = Schedule::parse(
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   1F0 1B0 1F1 1B1 .  \n");
  return schedule;
}

inline Plan plan_of(const Program& program, const Schedule& schedule, bool training = true) {
  return lower_schedule(program, schedule, Layout::of(schedule), training);
}

/// Returns a plan of two copies of two stages on two ranks.
inline Plan chimera_plan() {
  return plan_of(chain_program(2, 4), chimera(2, 4));
}

/// Returns a number over all ranks.
inline std::size_t count(const Plan& plan, Op op) {
  std::size_t n = 0;
  for (const RankPlan& rank : plan.ranks) {
    n += static_cast<std::size_t>(
        std::ranges::count(plan.list_of(rank.rank).instructions, op, &Instruction::op));
  }
  return n;
}

/// Returns the list of a rank, to be spoiled.
inline RankList& list_of(Plan& plan, int rank) {
  return plan.lists[static_cast<std::size_t>(plan.ranks[static_cast<std::size_t>(rank)].list)];
}

inline std::vector<Instruction>::iterator first(RankList& list, Op op) {
  return std::ranges::find(list.instructions, op, &Instruction::op);
}

inline bool mentions(const std::vector<std::string>& faults, std::string_view what) {
  return std::ranges::any_of(
      faults, [&](const std::string& fault) { return fault.find(what) != std::string::npos; });
}

}  // namespace stagecraft::testing
