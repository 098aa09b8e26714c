#include "stagecraft/actors/driver/late_step.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

bool ends_under_way(const WaitGraph& waits, const std::vector<Rank>& chain) {
  return chain.size() > 1 && waits.waits_for_sent(chain[chain.size() - 2]);
}

/// Returns whether the chain's end holds the others up (LS-1).
bool blames(const WaitGraph& waits, const std::vector<Rank>& chain) {
  return waits.holds_up(chain.back()) && !ends_under_way(waits, chain);
}

/// Returns the chain for the message: the longest that ends at the rank to blame (LS-1), else the
/// longest of all.
std::vector<Rank> chain_to_tell(const WaitGraph& waits, const std::vector<UnfinishedRank>& ranks) {
  std::vector<std::vector<Rank>> chains;
  std::map<Rank, int> held_up;
  for (const UnfinishedRank& u : ranks) {
    chains.push_back(waits.chain_from(u.rank));
    if (blames(waits, chains.back())) {
      ++held_up[chains.back().back()];
    }
  }
  const auto weight = [&](const std::vector<Rank>& chain) {
    const Rank end = chain.back();
    const bool is_blamed = blames(waits, chain);
    return std::tuple(waits.is_silent(end),
                      is_blamed ? held_up.at(end) : 0,
                      is_blamed ? waits.seconds_in_instruction(end) : 0.0,
                      chain.size());
  };
  return *std::ranges::max_element(chains, {}, weight);
}

/// Returns what the driver does for the rank that waits for it: tensors go at once, and releases of
/// tasks when earlier ones have run (Dispatch). A rank whose order is decided waits between tasks,
/// and its instruction is the last one before.
std::string driver_text(const WaitGraph& waits, Rank rank) {
  const Instruction* in = waits.instruction(rank);
  return in != nullptr && in->op == Op::Recv
             ? "has sent what it had"
             : "has not released its next task: those of the column before, on_column or decide "
               "have not ended";
}

/// Returns what the rank at the chain's end is doing, as a clause to follow its name.
std::string end_text(const WaitGraph& waits, const std::vector<Rank>& chain) {
  const Rank end = chain.back();
  const UnfinishedRank* unfinished = waits.find(end);
  if (unfinished == nullptr) {
    return end == kDriver ? driver_text(waits, chain[chain.size() - 2])
                          : "has answered and has no task left";
  }
  const Instruction* in = waits.instruction(end);
  if (unfinished->silent_for) {
    return fmt::format("is silent: its agent has not answered for {:.1f} s{}",
                       *unfinished->silent_for,
                       in == nullptr ? "" : fmt::format(" and was last in {}", waits.work(end)));
  }
  return in == nullptr ? "is between two tasks"
                       : fmt::format("has been in {} for {:.1f} s and waits for nobody",
                                     waits.work(end),
                                     waits.seconds_in_instruction(end));
}

std::string chain_text(const WaitGraph& waits, const std::vector<Rank>& chain) {
  const Rank end = chain.back();
  const std::string ways = waits.text(chain);
  if (chain.size() == 1) {
    return fmt::format("{} {}", peer_name(end), end_text(waits, chain));
  }
  const bool named_last = waits.waiting_for(chain[chain.size() - 2]).size() == 1;
  if (ends_under_way(waits, chain)) {
    return fmt::format("{}, which has sent it: it is under way", ways);
  }
  if (const auto circle = std::ranges::find(chain, end); circle + 1 != chain.end()) {
    const auto all = [&](auto&& is_of) {
      return std::all_of(circle, chain.end(), [&](Rank rank) {
        const Instruction* in = waits.instruction(rank);
        return in != nullptr && is_of(in->op);
      });
    };
    if (all([](Op op) { return op == Op::Vote; })) {
      return fmt::format("{}; so their votes are under way", ways);
    }
    // All send each other their parts of a sum before they wait.
    return all([](Op op) { return op == Op::Vote || is_collective(op); })
               ? fmt::format("{}; so what they send each other is under way", ways)
               : fmt::format("{}; so {} waits for itself", ways, peer_name(end));
  }
  if (named_last && waits.is_silent(end)) {
    return fmt::format("{}, silent since {:.1f} s", ways, *waits.find(end)->silent_for);
  }
  return named_last ? fmt::format("{}, which {}", ways, end_text(waits, chain))
                    : fmt::format("{}; {} {}", ways, peer_name(end), end_text(waits, chain));
}

/// Returns whether the rank is in a sum or gather that lacks the part of `other`.
bool waits_in_sum(const WaitGraph& waits, Rank rank, Rank other) {
  const Instruction* in = waits.instruction(rank);
  const std::vector<Rank> peers = waits.waiting_for(rank);
  return in != nullptr && is_collective(in->op) && std::ranges::find(peers, other) != peers.end();
}

/// Returns a text about the ranks that are not in the chain. It tells in full which of them wait
/// for its end in a sum, as that says what the end owes.
std::string others_text(const WaitGraph& waits,
                        const std::vector<UnfinishedRank>& ranks,
                        const std::vector<Rank>& chain) {
  std::vector<std::string> late, silent;
  std::string summing;
  for (const UnfinishedRank& u : ranks) {
    if (std::ranges::find(chain, u.rank) != chain.end()) {
      continue;
    }
    if (waits_in_sum(waits, u.rank, chain.back())) {
      summing += "; " + waits.text({u.rank, chain.back()});
    } else {
      (u.silent_for ? silent : late).push_back(to_string(u.rank));
    }
  }
  return summing +
         (silent.empty() ? "" : fmt::format("; silent, too: rank {}", fmt::join(silent, ", "))) +
         (late.empty() ? "" : fmt::format("; not done either: rank {}", fmt::join(late, ", ")));
}

ErrorContext place_at(const WaitGraph& waits, const Plan& plan, Rank rank) {
  ErrorContext place;
  if (const Instruction* instruction = waits.instruction(rank)) {
    const RankPlan& of_rank = plan.ranks[rank.index()];
    place = place_of(plan.tables, of_rank, *instruction);
    place.task = waits.work(rank);
  }
  place.rank = rank;
  return place;
}

/// Told is what a message says of the waits.
struct Told {
  Told(std::vector<UnfinishedRank> ranks, const Plan& plan, bool in_order)
      : unfinished(sorted(std::move(ranks))),
        waits(unfinished, plan, in_order),
        chain(chain_to_tell(waits, unfinished)) {}
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  [[nodiscard]] std::string sentence() const {
    return chain_text(waits, chain) + others_text(waits, unfinished, chain);
  }

  static std::vector<UnfinishedRank> sorted(std::vector<UnfinishedRank> ranks) {
    std::ranges::sort(ranks, {}, &UnfinishedRank::rank);
    return ranks;
  }

  const std::vector<UnfinishedRank> unfinished;
  const WaitGraph waits;
  const std::vector<Rank> chain;
};

}  // namespace

std::string wait_sentence(std::vector<UnfinishedRank> unfinished, const Plan& plan, bool in_order) {
  return Told(std::move(unfinished), plan, in_order).sentence();
}

Error late_step(std::vector<UnfinishedRank> unfinished,
                const Plan& plan,
                std::chrono::milliseconds deadline,
                bool in_order) {
  const std::string late = fmt::format("the step was not done within {} ms", deadline.count());
  if (unfinished.empty()) {
    return Error(Errc::ClusterTimeout,
                 fmt::format("{}, but is by now; set a longer {}", late, kOption))
        .about("step_deadline");
  }
  const Told told(std::move(unfinished), plan, in_order);
  const Rank end = told.chain.back();
  const bool has_culprit = blames(told.waits, told.chain);
  const std::string culprit = has_culprit                              ? peer_name(end)
                              : ends_under_way(told.waits, told.chain) ? "the connection"
                                                                       : "them";
  Error error(Errc::ClusterTimeout,
              fmt::format("{}: {}; find out what holds {} up, or set a longer {}",
                          late,
                          told.sentence(),
                          culprit,
                          kOption));
  error.about("step_deadline");
  if (has_culprit) {
    error.with(place_at(told.waits, plan, end));
  }
  return error;
}

}  // namespace stagecraft
