#include "stagecraft/compiler/plan/sum_check.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace stagecraft {

SumCheck::SumCheck(const RankList& list,
                   const PlanTables& tables,
                   const IssueOrder& order,
                   Fault fault)
    : list_(list),
      tables_(tables),
      order_(order),
      fault_(std::move(fault)),
      sums_(tables.groups.size()) {
  for (std::size_t g = 0; g < tables.groups.size(); ++g) {
    const PlanGroup& group = tables.groups[g];
    if ((group.has_rounds() || gathers_for_tasks(tables, group)) &&
        std::ranges::any_of(group.stages, [&](StageId stage) {
          return std::ranges::binary_search(list.stages, stage);
        })) {
      in_rounds_.push_back(g);
    }
  }
}

void SumCheck::add(const Instruction& i) {
  const bool gathers = is_collective(i.op) && gathers_weights(tables_, i);
  const bool of_update =
      i.op == Op::Update || (gathers && !gathers_for_tasks(tables_, group_of(i)));
  if (vote_ && !of_update && i.op != Op::Free) {
    fault("P-7", i, "comes behind the vote");
  }
  switch (i.op) {
    case Op::Run:
      check_run(i);
      break;
    case Op::Accumulate:
      check_accumulate(i);
      break;
    case Op::Start:
      gathers ? check_gather(i) : check_start(i);
      break;
    case Op::Finish: {
      Sums& of = sums_[static_cast<std::size_t>(i.group)];
      gathers ? check_finish(i, of.gather, of.gathered) : check_finish(i, of.start, of.finish);
      break;
    }
    case Op::Vote:
      check_vote(i);
      break;
    case Op::Update:
      check_update(i);
      break;
    case Op::Release:
      check_release(i);
      break;
    default:
      break;
  }
}

void SumCheck::end() {
  const auto missing = [&](std::size_t group, std::string_view what) {
    fault_("P-7", nullptr, fmt::format(fmt::runtime(what), group));
  };
  for (std::size_t g = 0; g < sums_.size(); ++g) {
    const Sums& of = sums_[g];
    if (of.start != nullptr && !of.finish) {
      missing(g, "the sum of group {} is started and never finished");
    }
    const bool gathers =
        of.gather != nullptr || (of.start != nullptr && tables_.groups[g].has_shards());
    if (gathers && !of.gathered) {
      missing(g, "the weights of group {} are never gathered");
    } else if (of.gather != nullptr && gathers_for_tasks(tables_, tables_.groups[g]) && !of.given) {
      missing(g, "the weights of group {} are never given back");
    }
  }
  if (tables_.training && !vote_) {
    fault_("P-7", nullptr, "it never votes");
  }
}

void SumCheck::require_over(std::string_view rule,
                            InstructionId earlier,
                            const Instruction& i) const {
  if (!order_.is_over(earlier, i)) {
    fault(rule, i, fmt::format("may begin before i{} is over", earlier.value));
  }
}

/// Backwards write to the gradients that the last round has summed.
void SumCheck::check_run(const Instruction& i) {
  for (const std::size_t g : in_rounds_) {
    Sums& of = sums_[g];
    if (of.finish && makes_gradients_of(tables_, tables_.groups[g], i)) {
      require_over("P-11", *of.finish, i);
    }
    if (!uses_weights_of(tables_, tables_.groups[g], i)) {
      continue;
    }
    if (!of.gathered || of.given) {
      fault("P-12", i, fmt::format("uses weights that group {} has not gathered", g));
    } else {
      require_over("P-12", *of.gathered, i);
      of.users.push_back(i.id);
    }
  }
}

void SumCheck::check_accumulate(const Instruction& i) {
  for (std::size_t g = 0; g < sums_.size(); ++g) {
    const PlanGroup& group = tables_.groups[g];
    Sums& of = sums_[g];
    if (!sums(tables_, group, i)) {
      continue;
    }
    if (of.start != nullptr && !(group.has_rounds() && of.finish)) {
      fault(group.has_rounds() ? "P-11" : "P-7",
            i,
            fmt::format("adds to gradients behind their sum in group {}", g));
    } else if (of.finish) {
      require_over("P-11", *of.finish, i);
    }
    of.has_more = true;
  }
  accumulated_.push_back(&i);
}

void SumCheck::check_start(const Instruction& i) {
  const PlanGroup& group = group_of(i);
  Sums& of = sums_[static_cast<std::size_t>(i.group)];
  const bool tie = group.kind == PlanGroup::Kind::Tie;
  if (i.collective != (tie                  ? CollectiveKind::AllGather
                       : group.has_shards() ? CollectiveKind::ReduceScatter
                                            : CollectiveKind::AllReduce)) {
    fault("P-7",
          i,
          "gradients are reduced over copies, scattered if these have shards, and gathered over a "
          "tie");
  }
  check_round(group, of, i);
  const auto is_of = [&](StageId stage) {
    return std::ranges::find(group.stages, stage) != group.stages.end();
  };
  for (const Instruction* tasks : accumulated_) {
    if (sums(tables_, group, *tasks)) {
      require_over("P-7", tasks->id, i);
    }
  }
  for (std::size_t g = 0; g < sums_.size(); ++g) {
    const PlanGroup& other = tables_.groups[g];
    if (tie && other.kind == PlanGroup::Kind::Copies && sums_[g].finish &&
        std::ranges::any_of(other.stages, is_of)) {
      require_over("P-7", *sums_[g].finish, i);
    }
    const auto is_of_both = [&](StageId stage) {
      return is_of(stage) && std::ranges::binary_search(list_.stages, stage);
    };
    if (!tie && other.kind == PlanGroup::Kind::Tie && sums_[g].start != nullptr &&
        std::ranges::any_of(other.stages, is_of_both)) {
      fault("P-7", i, fmt::format("sums over copies behind the sum of group {}, a tie", g));
    }
  }
  of.start = &i;
  of.finish.reset();
  of.has_more = false;
  ++of.rounds;
}

void SumCheck::check_round(const PlanGroup& group, const Sums& of, const Instruction& i) const {
  if (!group.has_rounds() && of.start != nullptr) {
    fault("P-7", i, "its group sums twice");
  } else if (i.round != of.rounds && (group.has_rounds() || i.round != 0)) {
    fault("P-11", i, fmt::format("expected round {}, found round {}", of.rounds, i.round));
  } else if (of.start != nullptr && group.has_rounds() && !of.finish) {
    fault("P-11", i, "begins before the round before it is finished");
  } else if (group.has_rounds() && !of.has_more) {
    fault("P-11", i, "no task has made gradients since the round before it");
  }
}

void SumCheck::check_gather(const Instruction& i) {
  const PlanGroup& group = group_of(i);
  Sums& of = sums_[static_cast<std::size_t>(i.group)];
  if (gathers_for_tasks(tables_, group)) {
    check_gather_for_tasks(of, i);
    of.gather = &i;
    of.gathered.reset();
    of.given.reset();
    ++of.gathers;
    return;
  }
  if (of.gather != nullptr || i.round != 0) {
    fault("P-7", i, "its group gathers once, in round 0");
  }
  of.gather = &i;
  for (const StageId stage : group.stages) {
    const auto update = updated_.find({stage, group.bucket});
    if (update != updated_.end()) {
      require_over("P-7", update->second, i);
    } else if (std::ranges::binary_search(list_.stages, stage)) {
      fault("P-7", i, "gathers weights before their update");
    }
  }
}

void SumCheck::check_gather_for_tasks(const Sums& of, const Instruction& i) const {
  if (i.round != of.gathers) {
    fault("P-12", i, fmt::format("expected round {}, found round {}", of.gathers, i.round));
  } else if (of.gather != nullptr && !of.given) {
    fault("P-12", i, "begins before the weights of the round before it are given back");
  } else if (of.given) {
    require_over("P-12", *of.given, i);
  }
}

void SumCheck::check_release(const Instruction& i) {
  Sums& of = sums_[static_cast<std::size_t>(i.group)];
  if (!gathers_for_tasks(tables_, group_of(i)) || !of.gathered || of.given) {
    fault("P-12", i, "its group has gathered no weights");
    return;
  }
  require_over("P-12", *of.gathered, i);
  for (const InstructionId user : of.users) {
    require_over("P-12", user, i);
  }
  of.users.clear();
  of.given = i.id;
}

void SumCheck::check_finish(const Instruction& i,
                            const Instruction* start,
                            std::optional<InstructionId>& end) const {
  if (start == nullptr || end || start->stream != i.stream || start->collective != i.collective ||
      start->round != i.round) {
    fault("P-7", i, "has no start of its own before it on its stream");
  }
  end = i.id;
}

void SumCheck::check_vote(const Instruction& i) {
  for (const Instruction* tasks : accumulated_) {
    require_over("P-7", tasks->id, i);
  }
  for (std::size_t g = 0; g < sums_.size(); ++g) {
    if (sums_[g].finish) {
      require_over("P-7", *sums_[g].finish, i);
    }
  }
  for (const std::size_t g : in_rounds_) {
    if (sums_[g].has_more || sums_[g].rounds == 0) {
      fault("P-11", i, fmt::format("no round of group {} sums its last gradients", g));
    }
  }
  vote_ = i.id;
}

void SumCheck::check_update(const Instruction& i) {
  if (!vote_) {
    fault("P-7", i, "changes weights before the vote");
  } else {
    require_over("P-7", *vote_, i);
  }
  if (!updated_.insert({{i.task.stage, i.bucket}, i.id}).second) {
    fault("P-7", i, "updates its bucket again");
  }
}

}  // namespace stagecraft
