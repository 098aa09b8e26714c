/// The rules P-1 to P-8 of instruction.h and plan.h, checked over the whole plan.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {
namespace {

using Transfer = std::tuple<Rank, Rank, EdgeId, Microbatch>;  // sender, receiver, what

Transfer transfer_of(const RankPlan& rank, const Instruction& i) {
  return i.op == Op::Send ? Transfer{rank.rank, i.peer, i.edge, i.task.microbatch}
                          : Transfer{i.peer, rank.rank, i.edge, i.task.microbatch};
}

std::string transfer_text(const Transfer& t) {
  return fmt::format("edge {} microbatch {} from rank {} to rank {}",
                     std::get<2>(t).value,
                     std::get<3>(t).value,
                     std::get<0>(t).value,
                     std::get<1>(t).value);
}

void check_pairs(const Plan& plan, std::vector<std::string>& faults) {
  std::map<Transfer, std::pair<int, int>> count;  // sends, receives
  for (const Feed& feed : plan.feeds) {
    ++count[{kDriver, feed.to, feed.edge, feed.microbatch}].first;
  }
  for (const RankPlan& rank : plan.ranks) {
    for (const Instruction& i : rank.instructions) {
      if (i.op == Op::Send) {
        ++count[transfer_of(rank, i)].first;
      } else if (i.op == Op::Recv) {
        ++count[transfer_of(rank, i)].second;
      }
    }
  }
  for (const auto& [transfer, n] : count) {
    if (n != std::pair{1, 1}) {
      faults.push_back(fmt::format("P-3: {} has {} sends and {} receives, expected one of each",
                                   transfer_text(transfer),
                                   n.first,
                                   n.second));
    }
  }
}

void check_slots(const RankPlan& rank, std::vector<std::string>& faults) {
  std::map<SlotId, ValueKey> full;
  const auto fault = [&](const Instruction& i, std::string_view what) {
    faults.push_back(fmt::format("P-4: rank {}, {}: {}", rank.rank.value, to_string(i), what));
  };
  for (const Instruction& i : rank.instructions) {
    for (const SlotUse& use : i.reads) {
      const auto held = full.find(use.slot);
      if (held == full.end() || held->second != use.value) {
        fault(i, "reads or frees a slot that does not hold the value");
      }
    }
    for (const SlotUse& use : i.writes) {
      if (!full.emplace(use.slot, use.value).second) {
        fault(i, "writes a slot that is not free");
      }
      if (use.slot.value < 0 || use.slot.value >= rank.slots) {
        fault(i, "writes a slot the rank does not have");
      }
    }
    if (i.op == Op::Free) {
      full.erase(i.reads.front().slot);
    }
    if (i.does_nothing() && !i.writes.empty()) {
      faults.push_back(fmt::format(
          "P-8: rank {}, {}: it reads nothing, yet writes", rank.rank.value, to_string(i)));
    }
  }
  for (const auto& [slot, value] : full) {
    faults.push_back(
        fmt::format("P-4: rank {}: slot {} is never freed", rank.rank.value, slot.value));
  }
}

void check_waits(const RankPlan& rank, std::vector<std::string>& faults) {
  std::set<InstructionId> seen;
  for (const Instruction& i : rank.instructions) {
    for (const InstructionId wait : i.waits) {
      if (!seen.contains(wait)) {
        faults.push_back(fmt::format("P-6: rank {}, {}: waits for i{}, which is not earlier",
                                     rank.rank.value,
                                     to_string(i),
                                     wait.value));
      }
    }
    if (!seen.insert(i.id).second) {
      faults.push_back(
          fmt::format("P-1: rank {}: the id i{} is used twice", rank.rank.value, i.id.value));
    }
  }
}

void check_replica_groups(const Plan& plan, std::vector<std::string>& faults) {
  for (const RankPlan& rank : plan.ranks) {
    std::vector<int> entered, expected;
    bool reduced = false;
    for (const Instruction& i : rank.instructions) {
      if (i.op == Op::Collective) {
        entered.push_back(i.group);
        reduced = true;
      } else if (i.op == Op::Run && reduced) {
        faults.push_back(fmt::format(
            "P-7: rank {}, {}: a task behind a reduction", rank.rank.value, to_string(i)));
      }
    }
    for (std::size_t g = 0; g < plan.replica_groups.size(); ++g) {
      if (std::ranges::find(plan.replica_groups[g].ranks, rank.rank) !=
          plan.replica_groups[g].ranks.end()) {
        expected.push_back(static_cast<int>(g));
      }
    }
    if (entered != expected) {
      faults.push_back(fmt::format("P-7: rank {} enters the replica groups [{}], expected [{}]",
                                   rank.rank.value,
                                   fmt::join(entered, ", "),
                                   fmt::join(expected, ", ")));
    }
  }
}

/// Runs all lists together: a receive passes when its send has been issued; reductions and the vote
/// come behind all tasks and in one order everywhere (P-7), so they need no account of their own.
void check_progress(const Plan& plan, std::vector<std::string>& faults) {
  std::set<Transfer> sent;
  for (const Feed& feed : plan.feeds) {
    sent.insert({kDriver, feed.to, feed.edge, feed.microbatch});
  }
  std::vector<std::size_t> next(plan.ranks.size(), 0);
  std::size_t votes = 0;
  const auto advance = [&](std::size_t r) {
    const RankPlan& rank = plan.ranks[r];
    bool moved = false;
    while (next[r] < rank.instructions.size()) {
      const Instruction& i = rank.instructions[next[r]];
      if (i.op == Op::Recv && !sent.contains(transfer_of(rank, i))) {
        break;
      }
      if (i.op == Op::Send) {
        sent.insert(transfer_of(rank, i));
      }
      votes += i.op == Op::Vote ? 1 : 0;
      ++next[r];
      moved = true;
    }
    return moved;
  };
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      moved = advance(r) || moved;
    }
  }
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    if (next[r] < plan.ranks[r].instructions.size()) {
      faults.push_back(fmt::format("P-5: rank {} can never pass {}",
                                   plan.ranks[r].rank.value,
                                   to_string(plan.ranks[r].instructions[next[r]])));
    }
  }
  if (plan.training && votes != plan.ranks.size()) {
    faults.push_back(fmt::format("P-5: {} of {} ranks vote", votes, plan.ranks.size()));
  }
}

}  // namespace

std::vector<std::string> verify(const Plan& plan) {
  std::vector<std::string> faults;
  check_pairs(plan, faults);
  for (const RankPlan& rank : plan.ranks) {
    check_slots(rank, faults);
    check_waits(rank, faults);
  }
  check_replica_groups(plan, faults);
  check_progress(plan, faults);
  return faults;
}

}  // namespace stagecraft
