#include "stagecraft/compiler/plan/plan.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"

namespace stagecraft {
namespace {

constexpr std::array kOps{"run",
                          "send",
                          "recv",
                          "start",
                          "finish",
                          "free",
                          "accumulate",
                          "vote",
                          "update",
                          "regroup",
                          "release"};
constexpr std::array kCollectives{"all-reduce", "reduce-scatter", "all-gather", "all-to-all"};
constexpr std::array kRoles{
    "activation", "gradient", "saved", "weight gradient", "part of activation", "part of gradient"};

std::string use_text(const SlotUse& use) {
  const ValueKey& v = use.value;
  const std::string value = v.value == kNoValue ? "" : fmt::format(" %{}", v.value.value);
  return fmt::format("s{}={}{} of stage {}{} mb {}",
                     use.slot.value,
                     kRoles[static_cast<std::size_t>(v.role)],
                     value,
                     v.stage.value,
                     v.chunk == 0 ? "" : fmt::format(".{}", v.chunk),
                     v.microbatch.value);
}

std::string uses_text(std::string_view word, const std::vector<SlotUse>& uses) {
  std::vector<std::string> texts;
  for (const SlotUse& use : uses) {
    texts.push_back(use_text(use));
  }
  return texts.empty() ? "" : fmt::format(" {} [{}]", word, fmt::join(texts, ", "));
}

/// Returns "rank 1", "ranks 1, 3".
std::string ranks_text(const std::vector<Rank>& ranks) {
  std::vector<int> numbers;
  for (const Rank rank : ranks) {
    numbers.push_back(rank.value);
  }
  return fmt::format("rank{} {}", numbers.size() == 1 ? "" : "s", fmt::join(numbers, ", "));
}

std::string peer_text(PeerId peer) {
  return peer == kDriverPeer ? "the driver" : fmt::format("peer {}", peer.value);
}

std::string peer_text(const RankPlan& rank, PeerId peer) {
  const bool known = peer.value >= 0 && peer.index() < rank.peers.size();
  return known ? peer_name(rank.peers[peer.index()]) : peer_text(peer);
}

/// Returns ".0-2" for chunks 0 to 2, "" for the first chunk alone.
std::string chunks_text(const ChunkRange& chunks) {
  return chunks == ChunkRange{} ? ""
         : chunks.count == 1    ? fmt::format(".{}", chunks.first)
                                : fmt::format(".{}-{}", chunks.first, chunks.end() - 1);
}

/// Returns "i5 send edge 1 mb 1 to peer 1".
std::string name_text(const Instruction& i, const std::string& peer) {
  std::string text = fmt::format("i{} {}", i.id.value, kOps[static_cast<std::size_t>(i.op)]);
  switch (i.op) {
    case Op::Run:
    case Op::Accumulate:
      text += fmt::format(" {}{}", to_string(i.task), chunks_text(i.chunks));
      break;
    case Op::Start:
    case Op::Finish:
      text += fmt::format(
          " {} of group {}", kCollectives[static_cast<std::size_t>(i.collective)], i.group);
      if (is_exchange(i)) {
        text += fmt::format(
            " {} {}{}", i.returns ? "after" : "for", to_string(i.task), chunks_text(i.chunks));
      } else if (i.round > 0) {
        text += fmt::format(" round {}", i.round);
      }
      break;
    case Op::Release:
      text += fmt::format(" weights of group {}", i.group);
      break;
    case Op::Update:
      text += fmt::format(" stage {} bucket {}", i.task.stage.value, i.bucket);
      break;
    case Op::Send:
    case Op::Recv:
      text += fmt::format(" edge {} mb {} {} {}",
                          i.edge.value,
                          i.transferred().value,
                          i.op == Op::Send ? "to" : "from",
                          peer);
      break;
    case Op::Regroup: {
      std::vector<std::string> ranges;
      for (const RowRange& r : i.rows) {
        ranges.push_back(fmt::format("{}-{}/{}", r.first, r.first + r.count, r.of));
      }
      text += fmt::format(" {} rows {}", to_string(i.task), fmt::join(ranges, ","));
      break;
    }
    default:
      break;
  }
  return text;
}

/// Returns the name with slots and waits.
std::string text_of(const Instruction& i, const std::string& peer) {
  std::string text = name_text(i, peer) + (i.does_nothing() ? ", which does nothing" : "") +
                     uses_text("reads", i.reads) + uses_text("writes", i.writes);
  if (i.overlap >= 0) {
    text += fmt::format(" overlap {}", i.overlap);
  }
  if (!i.waits.empty()) {
    std::vector<std::string> ids;
    for (const InstructionId w : i.waits) {
      ids.push_back(fmt::format("i{}", w.value));
    }
    text += fmt::format(" after {}", fmt::join(ids, ","));
  }
  return text;
}

std::string stages_text(const std::vector<StageId>& stages) {
  std::vector<int> numbers;
  for (const StageId stage : stages) {
    numbers.push_back(stage.value);
  }
  return fmt::format("stage{} {}", numbers.size() == 1 ? "" : "s", fmt::join(numbers, ", "));
}

/// Returns whether some of the instruction's chunks are of the group's bucket.
bool overlaps(const PlanTables& tables, const PlanGroup& group, const Instruction& of) {
  const ChunkRange& chunks = tables.buckets[static_cast<std::size_t>(group.bucket)].chunks;
  return of.chunks.first < chunks.end() && chunks.first < of.chunks.end();
}

/// Returns how many ranks run each list.
std::vector<std::size_t> runs_of_lists(const Plan& plan) {
  std::vector<std::size_t> runs(plan.lists.size());
  for (const RankPlan& rank : plan.ranks) {
    ++runs[static_cast<std::size_t>(rank.list)];
  }
  return runs;
}

}  // namespace

std::vector<Rank> PlanGroup::members(Rank rank) const {
  for (const std::vector<Rank>& set : sets) {
    if (std::ranges::find(set, rank) != set.end()) {
      const std::set<Rank> all(set.begin(), set.end());
      return {all.begin(), all.end()};
    }
  }
  return {};
}

std::size_t Plan::instruction_count() const {
  const std::vector<std::size_t> runs = runs_of_lists(*this);
  std::size_t count = 0;
  for (std::size_t l = 0; l < lists.size(); ++l) {
    count += runs[l] * lists[l].instructions.size();
  }
  return count;
}

std::size_t Plan::surplus_count() const {
  const std::vector<std::size_t> runs = runs_of_lists(*this);
  std::size_t count = 0;
  for (std::size_t l = 0; l < lists.size(); ++l) {
    count += runs[l] * static_cast<std::size_t>(std::ranges::count_if(lists[l].instructions,
                                                                      &Instruction::does_nothing));
  }
  return count;
}

std::vector<StageId> numbers_of_copy(const std::vector<PlanStage>& stages, int copy) {
  std::vector<StageId> numbers;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].copy == copy) {
      numbers.resize(std::max(numbers.size(), stages[s].program.index() + 1));
      numbers[stages[s].program.index()] = StageId(s);
    }
  }
  return numbers;
}

Microbatch tagged_microbatch(const PlanTables& tables,
                             const RankPlan& rank,
                             const Instruction& transfer) {
  const std::vector<SlotUse>& moved = transfer.op == Op::Send ? transfer.reads : transfer.writes;
  const bool part = !moved.empty() && (moved.front().value.role == Role::ActivationPart ||
                                       moved.front().value.role == Role::GradientPart);
  const int size = part ? 1 : tables.stages[transfer.task.stage.index()].size;
  return in_step_of(rank, transfer.transferred(), size);
}

bool sums(const PlanTables& tables, const PlanGroup& group, const Instruction& accumulate) {
  if (std::ranges::find(group.stages, accumulate.task.stage) == group.stages.end()) {
    return false;
  }
  if (group.kind != PlanGroup::Kind::Copies) {
    return group.kind == PlanGroup::Kind::Tie;
  }
  return overlaps(tables, group, accumulate);
}

bool gathers_for_tasks(const PlanTables& tables, const PlanGroup& group) {
  return tables.training ? group.lends_weights() : group.splits_weights();
}

bool gathers_weights(const PlanTables& tables, const Instruction& collective) {
  const PlanGroup& group = tables.groups[static_cast<std::size_t>(collective.group)];
  return collective.collective == CollectiveKind::AllGather &&
         (group.has_shards() || gathers_for_tasks(tables, group));
}

bool makes_gradients_of(const PlanTables& tables, const PlanGroup& group, const Instruction& run) {
  return group.has_rounds() && run.op == Op::Run && run.task.kind != CellKind::Forward &&
         run.task.kind != CellKind::BackwardInput && sums(tables, group, run);
}

bool uses_weights_of(const PlanTables& tables, const PlanGroup& group, const Instruction& run) {
  return run.op == Op::Run && !run.does_nothing() && gathers_for_tasks(tables, group) &&
         std::ranges::find(group.stages, run.task.stage) != group.stages.end() &&
         overlaps(tables, group, run);
}

std::vector<std::string> tied_parameters_of(const PlanTables& tables, StageId stage) {
  std::vector<std::string> tied;
  for (const PlanGroup& group : tables.groups) {
    if (group.kind == PlanGroup::Kind::Tie &&
        std::ranges::find(group.stages, stage) != group.stages.end()) {
      tied.insert(tied.end(), group.parameters.begin(), group.parameters.end());
    }
  }
  return tied;
}

std::vector<std::vector<Rank>> copies_of_parts(const PlanGroup& divided) {
  std::vector<std::vector<Rank>> copies;
  if (divided.sets.size() > 1) {
    copies.resize(divided.sets.front().size());
    for (const std::vector<Rank>& set : divided.sets) {
      for (std::size_t part = 0; part < copies.size(); ++part) {
        copies[part].push_back(set[part]);
      }
    }
  }
  return copies;
}

bool divides_weights(const PlanTables& tables) {
  return tables.training &&
         std::ranges::find(tables.groups, PlanGroup::Kind::Divided, &PlanGroup::kind) !=
             tables.groups.end();
}

std::vector<Microbatch> exchanged_microbatches(const PlanTables& tables,
                                               Rank rank,
                                               const Instruction& exchange) {
  const PlanGroup& group = tables.groups[static_cast<std::size_t>(exchange.group)];
  std::vector<Rank> all;
  for (const std::vector<Rank>& set : group.sets) {
    all.insert(all.end(), set.begin(), set.end());
  }
  std::ranges::sort(all);
  const int own = tables.microbatches / std::max(1, static_cast<int>(all.size()));
  const int size = tables.stages[exchange.task.stage.index()].size;
  std::vector<Microbatch> microbatches;
  for (const Rank member : group.members(rank)) {
    const auto position = std::ranges::lower_bound(all, member) - all.begin();
    const RankPlan there{
        .rank = member, .first_microbatch = static_cast<std::int32_t>(position) * own, .peers = {}};
    microbatches.push_back(in_step_of(there, exchange.task.microbatch, size));
  }
  return microbatches;
}

bool copies_differ(const Plan& plan) {
  return divides_weights(plan.tables) ||
         std::ranges::any_of(plan.tables.groups, &PlanGroup::has_shards);
}

std::string to_string(const PlanTables& tables, const PlanGroup& group) {
  if (group.kind == PlanGroup::Kind::Tie) {
    return fmt::format("{} of {}", fmt::join(group.parameters, ", "), stages_text(group.stages));
  }
  const ChunkRange& chunks = tables.buckets[static_cast<std::size_t>(group.bucket)].chunks;
  if (chunks.count == 0) {
    return fmt::format("weights of {}, not gathered", stages_text(group.stages));
  }
  const auto part = [&](const PlanBucket& bucket) {
    return bucket.stages == group.stages && bucket.chunks != chunks;
  };
  return std::ranges::any_of(tables.buckets, part)
             ? fmt::format("{} of {}",
                           chunks.count == 1
                               ? fmt::format("chunk {}", chunks.first)
                               : fmt::format("chunks {}-{}", chunks.first, chunks.end() - 1),
                           stages_text(group.stages))
             : stages_text(group.stages);
}

std::string to_string(const Instruction& instruction) {
  return text_of(instruction, peer_text(instruction.peer));
}

std::string to_string(const RankPlan& rank, const Instruction& instruction) {
  return text_of(instruction, peer_text(rank, instruction.peer));
}

std::string short_name(const RankPlan& rank, const Instruction& instruction) {
  return name_text(instruction, peer_text(rank, instruction.peer));
}

ErrorContext place_of(const PlanTables& tables, const RankPlan& rank, const Instruction& i) {
  ErrorContext place;
  if (i.op == Op::Run || i.op == Op::Accumulate || i.op == Op::Regroup || is_transfer(i.op) ||
      is_exchange(i)) {
    place.stage = i.task.stage;
    place.microbatch =
        in_step_of(rank, i.task.microbatch, tables.stages[i.task.stage.index()].size);
    place.task = to_string(i.task);
  } else if (i.op == Op::Update) {
    place.stage = i.task.stage;
  }
  if (is_transfer(i.op)) {
    place.peer = peer_name(rank.peers[i.peer.index()]);
  }
  return place;
}

std::string to_string(const Plan& plan) {
  std::string text = fmt::format(
      "{} plan, {}, {}{}, driver sends {}\n",
      plan.tables.training ? "training" : "forward-only",
      count_text(plan.tables.microbatches, "microbatch"),
      count_text(plan.instruction_count(), "instruction"),
      plan.surplus_count() == 0 ? "" : fmt::format(" ({} do nothing)", plan.surplus_count()),
      count_text(plan.feeds.size(), "tensor"));
  for (std::size_t g = 0; g < plan.tables.groups.size(); ++g) {
    const PlanGroup& group = plan.tables.groups[g];
    std::vector<std::string> sets;
    for (const std::vector<Rank>& set : group.sets) {
      sets.push_back(ranks_text(group.members(set.front())));
    }
    text += fmt::format("group {}: {}{} on {}\n",
                        g,
                        to_string(plan.tables, group),
                        group.kind == PlanGroup::Kind::Divided ? ", divided,"
                        : group.lends_weights() ? ", in shards, in rounds, weights too,"
                        : group.has_rounds()    ? ", in shards, in rounds,"
                        : group.has_shards()    ? ", in shards,"
                                                : "",
                        fmt::join(sets, "; on "));
  }
  for (std::size_t l = 0; l < plan.lists.size(); ++l) {
    const RankList& list = plan.lists[l];
    std::vector<Rank> ranks;
    std::vector<std::vector<Rank>> peers(static_cast<std::size_t>(list.peers));
    for (const RankPlan& rank : plan.ranks) {
      if (rank.list == static_cast<std::int32_t>(l)) {
        ranks.push_back(rank.rank);
        for (std::size_t p = 0; p < peers.size(); ++p) {
          peers[p].push_back(rank.peers[p]);
        }
      }
    }
    std::size_t width = 0;
    for (const std::string& stream : list.streams) {
      width = std::max(width, stream.size());
    }
    text += fmt::format("{}: {} slots\n", ranks_text(ranks), list.slots);
    for (const Instruction& i : list.instructions) {
      const std::string peer =
          i.peer == kDriverPeer ? peer_text(i.peer) : ranks_text(peers[i.peer.index()]);
      text += fmt::format("  {:<{}} {}\n", list.streams[i.stream.index()], width, text_of(i, peer));
    }
  }
  return text;
}

}  // namespace stagecraft
