#include "stagecraft/compiler/plan/plan.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

constexpr std::array kOps{
    "run", "send", "recv", "collective", "free", "accumulate", "vote", "update", "regroup"};
constexpr std::array kStreamNames{"compute", "send", "receive"};
constexpr std::array kCollectives{"all-reduce", "reduce-scatter", "all-gather", "all-to-all"};
constexpr std::array kRoles{
    "activation", "gradient", "saved", "weight gradient", "part of activation", "part of gradient"};

std::string use_text(const SlotUse& use) {
  const ValueKey& v = use.value;
  const std::string value = v.value == kNoValue ? "" : fmt::format(" %{}", v.value.value);
  return fmt::format("s{}={}{} of stage {} mb {}",
                     use.slot.value,
                     kRoles[static_cast<std::size_t>(v.role)],
                     value,
                     v.stage.value,
                     v.microbatch.value);
}

std::string uses_text(std::string_view word, const std::vector<SlotUse>& uses) {
  std::vector<std::string> texts;
  for (const SlotUse& use : uses) {
    texts.push_back(use_text(use));
  }
  return texts.empty() ? "" : fmt::format(" {} [{}]", word, fmt::join(texts, ", "));
}

}  // namespace

std::vector<Rank> Tie::members() const {
  const std::set<Rank> all(ranks.begin(), ranks.end());
  return {all.begin(), all.end()};
}

std::size_t Plan::surplus_count() const {
  std::size_t count = 0;
  for (const RankPlan& rank : ranks) {
    count += static_cast<std::size_t>(
        std::ranges::count_if(rank.instructions, &Instruction::does_nothing));
  }
  return count;
}

std::size_t Plan::instruction_count() const {
  std::size_t count = 0;
  for (const RankPlan& rank : ranks) {
    count += rank.instructions.size();
  }
  return count;
}

std::string to_string(const Tie& tie) {
  const auto numbers = [](const auto& ids) {
    std::vector<std::int64_t> result;
    for (const auto id : ids) {
      result.push_back(id.value);
    }
    return fmt::format("{}", fmt::join(result, ", "));
  };
  return fmt::format("{} of stages {} on rank{} {}",
                     fmt::join(tie.parameters, ", "),
                     numbers(tie.stages),
                     tie.members().size() == 1 ? "" : "s",
                     numbers(tie.members()));
}

std::string to_string(const Instruction& i) {
  std::string text = fmt::format("i{} {}", i.id.value, kOps[static_cast<std::size_t>(i.op)]);
  switch (i.op) {
    case Op::Run:
    case Op::Accumulate:
      text +=
          fmt::format(" {}{}", to_string(i.task), i.does_nothing() ? ", which does nothing" : "");
      break;
    case Op::Collective:
      text += fmt::format(" {} over {} {}",
                          kCollectives[static_cast<std::size_t>(i.collective)],
                          i.collective == CollectiveKind::AllGather ? "tie" : "replica group",
                          i.group);
      break;
    case Op::Update:
      text += fmt::format(" stage {}", i.task.stage.value);
      break;
    case Op::Send:
    case Op::Recv:
      text += fmt::format(" edge {} mb {} {} {}",
                          i.edge.value,
                          i.transferred().value,
                          i.op == Op::Send ? "to" : "from",
                          peer_name(i.peer));
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
  text += uses_text("reads", i.reads) + uses_text("writes", i.writes);
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

ErrorContext place_of(const Instruction& i) {
  ErrorContext place;
  const bool transfer = i.op == Op::Send || i.op == Op::Recv;
  if (i.op == Op::Run || i.op == Op::Accumulate || i.op == Op::Regroup || transfer) {
    place.stage = i.task.stage;
    place.microbatch = i.task.microbatch;
    place.task = to_string(i.task);
  } else if (i.op == Op::Update) {
    place.stage = i.task.stage;
  }
  if (transfer) {
    place.peer = peer_name(i.peer);
  }
  return place;
}

std::string to_string(const Plan& plan) {
  std::string text = fmt::format(
      "{} plan, {} microbatches, {} instructions{}, driver sends {} tensors\n",
      plan.training ? "training" : "forward-only",
      plan.microbatches,
      plan.instruction_count(),
      plan.surplus_count() == 0 ? "" : fmt::format(" ({} do nothing)", plan.surplus_count()),
      plan.feeds.size());
  for (std::size_t t = 0; t < plan.ties.size(); ++t) {
    text += fmt::format("tie {}: {}\n", t, to_string(plan.ties[t]));
  }
  for (const RankPlan& rank : plan.ranks) {
    text += fmt::format("rank {}: {} slots\n", rank.rank.value, rank.slots);
    for (const Instruction& i : rank.instructions) {
      text += fmt::format(
          "  {:<8}{}\n", kStreamNames[static_cast<std::size_t>(i.stream)], to_string(i));
    }
  }
  return text;
}

}  // namespace stagecraft
