#include "stagecraft/actors/reference/sum_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace stagecraft {
namespace {

/// The microbatches whose gradients a rank adds up for some chunks, by round.
struct Chain {
  std::vector<SumOrder::Microbatches> rounds;
  bool ends = false;  // the last round has ended
};

/// Returns the chunks of an Accumulate whose gradients are in a bucket.
std::vector<std::int32_t> summed_chunks(const PlanTables& tables, const Instruction& accumulate) {
  std::vector<std::int32_t> chunks;
  for (const PlanBucket& bucket : tables.buckets) {
    if (std::ranges::find(bucket.stages, accumulate.task.stage) == bucket.stages.end()) {
      continue;
    }
    for (std::int32_t c = bucket.chunks.first; c < bucket.chunks.end(); ++c) {
      if (accumulate.chunks.has(c)) {
        chunks.push_back(c);
      }
    }
  }
  return chunks;
}

bool ends_a_round(const PlanTables& tables, const Instruction& i) {
  return i.op == Op::Start && tables.groups[static_cast<std::size_t>(i.group)].has_rounds() &&
         !gathers_weights(tables, i);
}

void end_round(const PlanTables& tables,
               std::int32_t number,
               std::map<std::pair<StageId, std::int32_t>, Chain>& chains) {
  const PlanGroup& group = tables.groups[static_cast<std::size_t>(number)];
  const PlanBucket& bucket = tables.buckets[static_cast<std::size_t>(group.bucket)];
  for (auto& [of, chain] : chains) {
    const bool in_group = std::ranges::find(group.stages, of.first) != group.stages.end();
    chain.ends = chain.ends || (in_group && bucket.chunks.has(of.second));
  }
}

SumOrder::Microbatches in_one_row(const std::vector<SumOrder::Microbatches>& rounds) {
  SumOrder::Microbatches all;
  for (const SumOrder::Microbatches& round : rounds) {
    all.insert(all.end(), round.begin(), round.end());
  }
  return all;
}

}  // namespace

bool SumOrder::is_plain() const {
  const auto in_one = [](const std::vector<Round>& rounds) {
    return rounds.empty() ||
           (rounds.size() == 1 && rounds.front().size() == 1 && rounds.front().front().size() == 1);
  };
  return std::ranges::all_of(stages, in_one) &&
         std::ranges::all_of(
             chains, [](const Microbatches& chain) { return std::ranges::is_sorted(chain); });
}

std::optional<SumOrder::Microbatches> SumOrder::common_order(std::int32_t microbatches) const {
  if (differs_by_chunk && !in_rounds.empty()) {
    return std::nullopt;
  }
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
    const std::vector<Instruction>& list = plan.list_of(rank.rank).instructions;
    std::map<std::pair<StageId, std::int32_t>, Chain> chains;  // by stage, chunk
    for (const Instruction& i : list) {
      if (i.op == Op::Accumulate) {
        const PlanStage& stage = plan.tables.stages[i.task.stage.index()];
        for (const std::int32_t chunk : summed_chunks(plan.tables, i)) {
          Chain& chain = chains[{i.task.stage, chunk}];
          if (chain.rounds.empty() || chain.ends) {
            chain.rounds.emplace_back();
            chain.ends = false;
          }
          chain.rounds.back().push_back(in_step_of(rank, i.task.microbatch, stage.size).value);
        }
      } else if (ends_a_round(plan.tables, i)) {
        end_round(plan.tables, i.group, chains);
        for (const StageId stage : plan.tables.groups[static_cast<std::size_t>(i.group)].stages) {
          order.in_rounds.insert(plan.tables.stages[stage.index()].program.index());
        }
      }
    }
    std::map<StageId, std::vector<SumOrder::Microbatches>> sums;  // by stage of the schedule
    for (auto& [of, chain] : chains) {
      order.chains.insert(in_one_row(chain.rounds));
      const auto [sum, is_first] = sums.try_emplace(of.first, chain.rounds);
      order.differs_by_chunk = order.differs_by_chunk || sum->second != chain.rounds;
    }
    std::map<StageId, std::vector<SumOrder::RankSum>> by_program;  // then round
    for (auto& [stage, rounds] : sums) {
      auto& of_program = by_program[plan.tables.stages[stage.index()].program];
      of_program.resize(std::max(of_program.size(), rounds.size()));
      for (std::size_t r = 0; r < rounds.size(); ++r) {
        of_program[r].push_back(std::move(rounds[r]));
      }
    }
    for (auto& [program, rounds] : by_program) {
      order.stages.resize(std::max(order.stages.size(), program.index() + 1));
      auto& of_stage = order.stages[program.index()];
      of_stage.resize(std::max(of_stage.size(), rounds.size()));
      for (std::size_t r = 0; r < rounds.size(); ++r) {
        of_stage[r].push_back(std::move(rounds[r]));
      }
    }
  }
  return order;
}

}  // namespace stagecraft
