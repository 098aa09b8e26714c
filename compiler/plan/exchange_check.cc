#include "stagecraft/compiler/plan/exchange_check.h"

#include <fmt/format.h>

namespace stagecraft {

ExchangeCheck::ExchangeCheck(const PlanTables& tables, const IssueOrder& order, Fault fault)
    : tables_(tables), order_(order), fault_(std::move(fault)) {
  for (const PlanGroup& group : tables.groups) {
    if (group.kind == PlanGroup::Kind::Divided) {
      const ChunkRange& chunks = tables.buckets[static_cast<std::size_t>(group.bucket)].chunks;
      divided_[group.stages.front()].insert(chunks.first);
    }
  }
}

void ExchangeCheck::add(const Instruction& i) {
  if (i.op == Op::Run && !i.does_nothing()) {
    check_run(i);
  } else if (is_exchange(i)) {
    check_exchange(i);
  }
}

void ExchangeCheck::end() {
  for (const auto& [part, turn] : turns_) {
    if (turn.step != Step::Returned) {
      fault_(*turn.last, "no exchange returns what its task has made");
    }
  }
}

bool ExchangeCheck::exchanges_for(const Instruction& run) const {
  Task input = run.task;
  input.kind = CellKind::BackwardInput;
  return run.task.kind != CellKind::BackwardWeight || !last_run_.contains(input);
}

void ExchangeCheck::check_run(const Instruction& i) {
  const auto found = divided_.find(i.task.stage);
  if (found == divided_.end()) {
    return;
  }
  const bool forward = i.task.kind == CellKind::Forward;
  for (const std::int32_t chunk : found->second) {
    if (!exchanges_for(i)) {
      break;
    }
    const auto turn = turns_.find({i.task, chunk});
    if (!i.chunks.has(chunk)) {
      const bool behind = forward ? i.chunks.first > chunk : i.chunks.first < chunk;
      if (!behind && turn != turns_.end()) {
        fault_(i, fmt::format("runs between an exchange for chunk {} and its task", chunk));
      } else if (behind && (turn == turns_.end() || turn->second.step != Step::Returned)) {
        fault_(i, fmt::format("runs before the samples of chunk {} have returned", chunk));
      } else if (behind) {
        require_over(turn->second.last, i);
      }
    } else if (i.chunks.count != 1 || turn == turns_.end() || turn->second.step != Step::Brought) {
      fault_(i, fmt::format("chunk {} runs by itself, between two exchanges", chunk));
    } else {
      require_over(turn->second.last, i);
      turn->second = {Step::Ran, &i};
    }
  }
  last_run_[i.task] = &i;
}

void ExchangeCheck::check_exchange(const Instruction& i) {
  const bool starts = i.op == Op::Start;
  if (starts && i.round != rounds_[i.group]++) {
    fault_(i, fmt::format("expected round {} of its group", rounds_[i.group] - 1));
  }
  const Part part{i.task, i.chunks.first};
  const auto known = turns_.find(part);
  if (starts && !i.returns) {
    const auto before = last_run_.find(i.task);
    if (known != turns_.end() || before == last_run_.end() || !is_next(i, *before->second)) {
      fault_(i, "comes twice, or not right behind the chunk before it");
      return;
    }
    require_over(before->second, i);
    turns_[part] = {Step::Bringing, &i};
    return;
  }
  const Step before = !i.returns ? Step::Bringing : starts ? Step::Ran : Step::Returning;
  if (known == turns_.end() || known->second.step != before) {
    fault_(i, "is out of its turn");
    return;
  }
  const Instruction& last = *known->second.last;
  if (starts) {
    require_over(&last, i);
  } else if (last.stream != i.stream || last.group != i.group || last.round != i.round) {
    fault_(i, "has no start of its own before it on its stream");
  }
  known->second = {starts ? Step::Returning : i.returns ? Step::Returned : Step::Brought, &i};
}

bool ExchangeCheck::is_next(const Instruction& exchange, const Instruction& run) {
  return exchange.task.kind == CellKind::Forward ? run.chunks.end() == exchange.chunks.first
                                                 : run.chunks.first == exchange.chunks.end();
}

void ExchangeCheck::require_over(const Instruction* earlier, const Instruction& i) const {
  if (!order_.is_over(earlier->id, i)) {
    fault_(i, fmt::format("may begin before i{} is over", earlier->id.value));
  }
}

}  // namespace stagecraft
