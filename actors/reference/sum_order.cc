#include "stagecraft/actors/reference/sum_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace stagecraft {

bool SumOrder::is_plain() const {
  const auto in_one = [](const std::vector<RankSum>& ranks) {
    return ranks.empty() || (ranks.size() == 1 && ranks.front().size() == 1);
  };
  return std::ranges::all_of(stages, in_one) &&
         std::ranges::all_of(
             chains, [](const Microbatches& chain) { return std::ranges::is_sorted(chain); });
}

std::optional<SumOrder::Microbatches> SumOrder::common_order(std::int32_t microbatches) const {
  const auto count = static_cast<std::size_t>(microbatches);
  std::vector<Microbatches> after(count);
  std::vector<int> missing(count);
  for (const Microbatches& chain : chains) {
    for (std::size_t i = 1; i < chain.size(); ++i) {
      after[static_cast<std::size_t>(chain[i - 1])].push_back(chain[i]);
      ++missing[static_cast<std::size_t>(chain[i])];
    }
  }
  std::priority_queue<std::int32_t, Microbatches, std::greater<>> ready;
  for (std::int32_t m = 0; m < microbatches; ++m) {
    if (missing[static_cast<std::size_t>(m)] == 0) {
      ready.push(m);
    }
  }
  Microbatches order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::int32_t next : after[static_cast<std::size_t>(order.back())]) {
      if (--missing[static_cast<std::size_t>(next)] == 0) {
        ready.push(next);
      }
    }
  }
  return order.size() == count ? std::optional(order) : std::nullopt;
}

SumOrder sum_order_of(const Plan& plan) {
  SumOrder order;
  for (const RankPlan& rank : plan.ranks) {
    std::map<std::pair<StageId, std::int32_t>, SumOrder::Microbatches> chains;  // then first chunk
    for (const Instruction& i : plan.list_of(rank.rank).instructions) {
      if (i.op == Op::Accumulate) {
        const PlanStage& stage = plan.tables.stages[i.task.stage.index()];
        chains[{i.task.stage, i.chunks.first}].push_back(
            in_step_of(rank, i.task.microbatch, stage.size).value);
      }
    }
    std::map<StageId, SumOrder::Microbatches> sums;  // by stage of the schedule
    for (auto& [of, chain] : chains) {
      sums.try_emplace(of.first, chain);
      order.chains.insert(std::move(chain));
    }
    std::map<StageId, SumOrder::RankSum> by_program;
    for (auto& [stage, microbatches] : sums) {
      by_program[plan.tables.stages[stage.index()].program].push_back(std::move(microbatches));
    }
    for (auto& [program, copies] : by_program) {
      order.stages.resize(std::max(order.stages.size(), program.index() + 1));
      order.stages[program.index()].push_back(std::move(copies));
    }
  }
  return order;
}

}  // namespace stagecraft
