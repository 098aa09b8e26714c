/// verify checks the rules P-1 to P-9 of plan.h over one rank's list and over the whole plan.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/plan/issue_order.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {
namespace {

using Transfer = std::tuple<Rank, Rank, EdgeId, Microbatch>;  // sender, receiver, tensor

Transfer transfer_of(const RankPlan& rank, const Instruction& i) {
  return i.op == Op::Send ? Transfer{rank.rank, i.peer, i.edge, i.transferred()}
                          : Transfer{i.peer, rank.rank, i.edge, i.transferred()};
}

std::string transfer_text(const Transfer& t) {
  return fmt::format("edge {} microbatch {} from rank {} to rank {}",
                     std::get<2>(t).value,
                     std::get<3>(t).value,
                     std::get<0>(t).value,
                     std::get<1>(t).value);
}

bool is_of_a_tie(const Instruction& i) {
  return i.op == Op::Collective && i.collective == CollectiveKind::AllGather;
}

/// Checks that instructions name only edges and groups that the plan has.
void check_names(const Plan& plan, std::vector<std::string>& faults) {
  const auto has = [](std::int32_t number, std::size_t count) {
    return number >= 0 && static_cast<std::size_t>(number) < count;
  };
  for (const RankPlan& rank : plan.ranks) {
    for (const Instruction& i : rank.instructions) {
      const bool transfer = i.op == Op::Send || i.op == Op::Recv;
      if (transfer && !has(i.edge.value, plan.edges.size())) {
        faults.push_back(fmt::format(
            "P-9: rank {}, {}: the plan has no such edge", rank.rank.value, to_string(i)));
      }
      if (i.op == Op::Collective &&
          !has(i.group, is_of_a_tie(i) ? plan.ties.size() : plan.replica_groups.size())) {
        faults.push_back(fmt::format(
            "P-9: rank {}, {}: the plan has no such group", rank.rank.value, to_string(i)));
      }
    }
  }
}

void check_pairs(const Plan& plan, std::vector<std::string>& faults) {
  std::map<Transfer, std::pair<int, int>> count;  // sends, receives
  for (const Feed& feed : plan.feeds) {
    ++count[{kDriver, feed.to, feed.edge, feed.microbatch}].first;
  }
  for (const PlanResult& result : plan.results) {
    ++count[{result.from, kDriver, result.edge, result.microbatch}].second;
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

/// Form says how many slots an instruction of this kind reads and writes; -1: as many as its task
/// has values.
struct Form {
  int reads = 0;
  int writes = 0;
  bool of_a_stage = false;
};

Form form_of(Op op) {
  switch (op) {
    case Op::Run:
      return {.reads = -1, .writes = -1, .of_a_stage = true};
    case Op::Send:
      return {.reads = 1, .of_a_stage = true};
    case Op::Recv:
      return {.writes = 1, .of_a_stage = true};
    case Op::Accumulate:
      return {.reads = 1, .of_a_stage = true};
    case Op::Free:
      return {.reads = 1};
    case Op::Update:
      return {.of_a_stage = true};
    case Op::Regroup:
      return {.reads = -1, .writes = 1, .of_a_stage = true};
    case Op::Collective:
    case Op::Vote:
      break;
  }
  return {};
}

/// Returns whether all enumerators have names. Only then may the instruction be printed.
bool is_in_words(const Instruction& i) {
  const auto uses_in_words = [](const std::vector<SlotUse>& uses) {
    return std::ranges::all_of(
        uses, [](const SlotUse& use) { return use.value.role <= Role::GradientPart; });
  };
  return i.op <= Op::Regroup && i.stream <= Stream::Receive &&
         i.collective <= CollectiveKind::AllToAll && i.task.kind <= CellKind::Update &&
         uses_in_words(i.reads) && uses_in_words(i.writes);
}

bool has_sound_rows(const Instruction& i) {
  return i.rows.size() == (i.op == Op::Regroup ? i.reads.size() : 0) &&
         (i.op != Op::Regroup || !i.rows.empty()) &&
         std::ranges::all_of(i.rows, [](const RowRange& r) {
           return r.first >= 0 && r.count >= 1 && r.of >= r.count && r.first <= r.of - r.count;
         });
}

/// Returns the fault of the instruction by itself (P-9); empty if there is none.
std::string misshape(const RankPlan& rank, const Instruction& i) {
  const Form form = form_of(i.op);
  const auto wrong = [](std::size_t count, int wanted) {
    return wanted >= 0 && count != static_cast<std::size_t>(wanted);
  };
  if (wrong(i.reads.size(), form.reads) || wrong(i.writes.size(), form.writes)) {
    return fmt::format("it reads {} and writes {} slots", i.reads.size(), i.writes.size());
  }
  if (!has_sound_rows(i)) {
    return "its rows are not those of what it reads";
  }
  for (const auto* uses : {&i.reads, &i.writes}) {
    for (const SlotUse& use : *uses) {
      if (use.slot.value < 0 || use.slot.value >= rank.slots) {
        return fmt::format("the rank has no slot {}, but {} slots", use.slot.value, rank.slots);
      }
    }
  }
  if (form.of_a_stage && !std::ranges::binary_search(rank.stages, i.task.stage)) {
    return fmt::format("stage {} is not on this rank", i.task.stage.value);
  }
  if (i.op == Op::Run && (i.task.kind == CellKind::Idle || i.task.kind == CellKind::Update)) {
    return "a Run is a forward or a backward";
  }
  if (i.task.microbatch.value < 0 || i.id.value < 0) {
    return "a number in it is below 0";
  }
  return "";
}

void check_forms(const RankPlan& rank, std::vector<std::string>& faults) {
  std::size_t writes = 0;
  for (std::size_t position = 0; position < rank.instructions.size(); ++position) {
    if (!is_in_words(rank.instructions[position])) {
      faults.push_back(fmt::format(
          "P-9: rank {}: instruction {} of the list has a kind, stream, task or role that there is "
          "not",
          rank.rank.value,
          position));
    }
    writes += rank.instructions[position].writes.size();
  }
  if (rank.slots < 0 || static_cast<std::size_t>(rank.slots) > writes) {
    faults.push_back(fmt::format(
        "P-9: rank {} has {} slots, and its list fills {}", rank.rank.value, rank.slots, writes));
  }
  if (!faults.empty()) {
    return;  // the checks below print instructions and count slots
  }
  for (const Instruction& i : rank.instructions) {
    if (const std::string fault = misshape(rank, i); !fault.empty()) {
      faults.push_back(fmt::format("P-9: rank {}, {}: {}", rank.rank.value, to_string(i), fault));
    } else if (i.does_nothing() && !i.writes.empty()) {
      faults.push_back(fmt::format(
          "P-8: rank {}, {}: it reads nothing, yet writes", rank.rank.value, to_string(i)));
    }
  }
}

/// Checks ids and waits by the list alone.
void check_ids(const RankPlan& rank, std::vector<std::string>& faults) {
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

bool is_on_its_stream(const Instruction& i) {
  switch (i.op) {
    case Op::Send:
      return i.stream == Stream::Send;
    case Op::Recv:
      return i.stream == Stream::Receive;
    case Op::Free:
      return true;
    default:
      return i.stream == Stream::Compute;
  }
}

void check_streams(const RankPlan& rank, std::vector<std::string>& faults) {
  const auto fault = [&](const Instruction& i, std::string_view what) {
    faults.push_back(fmt::format("P-2: rank {}, {}: {}", rank.rank.value, to_string(i), what));
  };
  using Block = std::pair<int, Task>;  // group and task; one value for all outside of groups
  std::map<InstructionId, Block> block_of;
  std::set<int> over;  // groups that have ended
  int open = -1;
  for (const Instruction& i : rank.instructions) {
    if (!is_on_its_stream(i)) {
      fault(i, "is on another stream than that of its kind");
    }
    if (open != i.overlap) {
      over.insert(open);
      open = i.overlap;
      if (open >= 0 && over.contains(open)) {
        fault(i, "its overlap group has ended before");
      }
    }
    const Block block(i.overlap, i.overlap < 0 ? Task{} : i.task);
    for (const InstructionId wait : i.waits) {
      const auto other = block_of.find(wait);
      if (i.overlap >= 0 && other != block_of.end() && other->second.first == i.overlap &&
          other->second != block) {
        fault(i, fmt::format("waits for i{} of another task of its overlap group", wait.value));
      }
    }
    block_of.emplace(i.id, block);
  }
}

/// SlotCheck follows every slot through the list. It checks the slot's content, and that streams
/// and waits order its users.
class SlotCheck {
 public:
  SlotCheck(const RankPlan& rank, std::vector<std::string>& faults)
      : rank_(rank), faults_(faults), slots_(static_cast<std::size_t>(rank.slots)) {}

  void run() {
    for (const Instruction& i : rank_.instructions) {
      for (const SlotUse& use : i.reads) {
        read(i, use);
      }
      for (const SlotUse& use : i.writes) {
        write(i, use);
      }
      order_.add(i);
    }
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (slots_[s].value) {
        faults_.push_back(fmt::format("P-4: rank {}: slot {} is never freed", rank_.rank.value, s));
      }
    }
  }

 private:
  struct Slot {
    std::optional<ValueKey> value;
    std::vector<InstructionId> users;  ///< since it was filled, the writer first
    std::optional<InstructionId> freed;
  };

  void fault(std::string_view rule, const Instruction& i, std::string_view what) {
    faults_.push_back(
        fmt::format("{}: rank {}, {}: {}", rule, rank_.rank.value, to_string(i), what));
  }

  void require_over(std::string_view rule, InstructionId earlier, const Instruction& i) {
    if (!order_.is_over(earlier, i)) {
      fault(rule, i, fmt::format("may begin before i{} is over", earlier.value));
    }
  }

  void read(const Instruction& i, const SlotUse& use) {
    Slot& slot = slots_[use.slot.index()];
    if (slot.value != use.value) {
      fault("P-4", i, "reads or frees a slot that does not hold the value");
      return;
    }
    if (i.op != Op::Free) {
      require_over("P-6", slot.users.front(), i);
      slot.users.push_back(i.id);
      return;
    }
    for (const InstructionId user : slot.users) {
      require_over("P-4", user, i);
    }
    slot = {.value = std::nullopt, .users = {}, .freed = i.id};
  }

  void write(const Instruction& i, const SlotUse& use) {
    Slot& slot = slots_[use.slot.index()];
    if (slot.value) {
      fault("P-4", i, "writes a slot that is not free");
      return;
    }
    if (slot.freed) {
      require_over("P-4", *slot.freed, i);
    }
    slot.value = use.value;
    slot.users = {i.id};
  }

  const RankPlan& rank_;
  std::vector<std::string>& faults_;
  std::vector<Slot> slots_;
  IssueOrder order_;
};

/// Checks that a list without training has forwards alone.
void check_forward_only(const RankPlan& rank, std::vector<std::string>& faults) {
  for (const Instruction& i : rank.instructions) {
    const bool backward = i.op == Op::Run && i.task.kind != CellKind::Forward;
    if (backward || i.op == Op::Accumulate || i.op == Op::Collective || i.op == Op::Vote ||
        i.op == Op::Update) {
      faults.push_back(fmt::format(
          "P-7: rank {}, {}: it trains, in a plan of forwards", rank.rank.value, to_string(i)));
    }
  }
}

/// Checks the end of a training list: tasks, sums over replicas, over ties, the vote, updates
/// (P-7).
void check_end(const RankPlan& rank, std::vector<std::string>& faults) {
  const auto fault = [&](const Instruction& i, std::string_view what) {
    faults.push_back(fmt::format("P-7: rank {}, {}: {}", rank.rank.value, to_string(i), what));
  };
  bool reduced = false;
  bool voted = false;
  std::set<StageId> updated;
  for (const Instruction& i : rank.instructions) {
    if (i.op == Op::Collective || i.op == Op::Vote) {
      if (voted) {
        fault(i, "comes behind the vote");
      }
      reduced = true;
      voted = voted || i.op == Op::Vote;
      if (i.op == Op::Collective && i.collective != CollectiveKind::AllReduce && !is_of_a_tie(i)) {
        fault(i, "gradients are reduced over the copies of a stage, or gathered over a tie");
      }
    } else if (i.op == Op::Update) {
      if (!voted) {
        fault(i, "changes weights before the vote");
      }
      if (!updated.insert(i.task.stage).second) {
        fault(i, "updates its stage again");
      }
    } else if (reduced && (i.op == Op::Run || i.op == Op::Accumulate)) {
      fault(i, "a task behind a reduction or the vote");
    } else if (voted && (i.op == Op::Send || i.op == Op::Recv)) {
      fault(i, "a transfer behind the vote");
    }
  }
}

void check_groups(const Plan& plan, std::vector<std::string>& faults) {
  const auto name = [](bool tie, std::size_t number) {
    return fmt::format("{} {}", tie ? "tie" : "group", number);
  };
  for (const RankPlan& rank : plan.ranks) {
    std::vector<std::string> entered, expected;
    for (const Instruction& i : rank.instructions) {
      if (i.op == Op::Collective) {
        entered.push_back(name(is_of_a_tie(i), static_cast<std::size_t>(i.group)));
      }
    }
    const auto expect = [&](bool tie, std::size_t number, const std::vector<Rank>& ranks) {
      if (std::ranges::find(ranks, rank.rank) != ranks.end()) {
        expected.push_back(name(tie, number));
      }
    };
    for (std::size_t g = 0; g < plan.replica_groups.size(); ++g) {
      expect(false, g, plan.replica_groups[g].ranks);
    }
    for (std::size_t t = 0; t < plan.ties.size(); ++t) {
      expect(true, t, plan.ties[t].ranks);
    }
    if (entered != expected) {
      faults.push_back(fmt::format("P-7: rank {} sums over [{}], expected [{}]",
                                   rank.rank.value,
                                   fmt::join(entered, ", "),
                                   fmt::join(expected, ", ")));
    }
  }
}

/// Checks that a tie's parts are on the ranks of their stages.
void check_ties(const Plan& plan, std::vector<std::string>& faults) {
  for (std::size_t t = 0; t < plan.ties.size(); ++t) {
    const Tie& tie = plan.ties[t];
    bool sound = tie.stages.size() == tie.ranks.size();
    for (std::size_t i = 0; sound && i < tie.stages.size(); ++i) {
      const auto rank = std::ranges::find(plan.ranks, tie.ranks[i], &RankPlan::rank);
      sound = rank != plan.ranks.end() && std::ranges::binary_search(rank->stages, tie.stages[i]);
    }
    if (!sound) {
      faults.push_back(fmt::format("P-7: tie {}, {}: not where its stages are", t, to_string(tie)));
    }
  }
}

/// Runs all lists together. A receive passes when its send has been issued. Reductions and the vote
/// come after all tasks and in the same order everywhere (P-7), so they need no simulation.
void check_progress(const Plan& plan, std::vector<std::string>& faults) {
  std::set<Transfer> sent;
  for (const Feed& feed : plan.feeds) {
    sent.insert({kDriver, feed.to, feed.edge, feed.microbatch});
  }
  std::vector<std::size_t> next(plan.ranks.size(), 0);
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
  for (const RankPlan& rank : plan.ranks) {
    const auto votes = std::ranges::count(rank.instructions, Op::Vote, &Instruction::op);
    if (votes != (plan.training ? 1 : 0)) {
      faults.push_back(
          fmt::format("P-5: rank {} votes {} times, and the others wait for its one vote",
                      rank.rank.value,
                      votes));
    }
  }
}

}  // namespace

std::vector<std::string> verify(const RankPlan& rank, bool training) {
  std::vector<std::string> faults;
  check_forms(rank, faults);
  if (faults.empty()) {  // the checks below rely on it
    check_ids(rank, faults);
    check_streams(rank, faults);
    SlotCheck(rank, faults).run();
    if (training) {
      check_end(rank, faults);
    } else {
      check_forward_only(rank, faults);
    }
  }
  return faults;
}

std::vector<std::string> verify(const Plan& plan) {
  std::vector<std::string> faults;
  for (const RankPlan& rank : plan.ranks) {
    const std::vector<std::string> of_rank = verify(rank, plan.training);
    faults.insert(faults.end(), of_rank.begin(), of_rank.end());
  }
  if (std::ranges::any_of(faults, [](const std::string& f) { return f.starts_with("P-9"); })) {
    return faults;  // the checks below rely on it
  }
  check_names(plan, faults);
  check_pairs(plan, faults);
  check_groups(plan, faults);
  check_ties(plan, faults);
  check_progress(plan, faults);
  return faults;
}

}  // namespace stagecraft
