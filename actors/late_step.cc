#include "stagecraft/actors/late_step.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

/// The silent ranks and who waits for whom.
class Waits {
 public:
  Waits(const std::vector<SilentRank>& silent, const Plan& plan) : plan_(&plan) {
    for (const SilentRank& s : silent) {
      silent_.emplace(s.rank, &s);
    }
  }

  [[nodiscard]] bool is_silent(Rank rank) const { return silent_.contains(rank); }

  /// Empty for a rank that waits for nobody, or of which nothing is known.
  [[nodiscard]] std::vector<Rank> waiting_for(Rank rank) const {
    const auto found = silent_.find(rank);
    return found != silent_.end() && found->second->status ? found->second->status->waiting_for
                                                           : std::vector<Rank>{};
  }

  [[nodiscard]] double seconds(Rank rank) const {
    const auto& status = silent_.at(rank)->status;
    return status ? status->seconds : 0.0;
  }

  /// From `rank` on, each waiting for the next: the shortest way to a rank that holds others up,
  /// else to any other end, else until one comes twice.
  [[nodiscard]] std::vector<Rank> chain_from(Rank rank) const {
    std::map<Rank, Rank> reached_from{{rank, rank}};
    std::vector<Rank> reached{rank};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const Rank next : waiting_for(reached[i])) {
        if (reached_from.emplace(next, reached[i]).second) {
          reached.push_back(next);
        }
      }
    }
    const auto ends = [this](Rank r) { return waiting_for(r).empty(); };
    auto end = std::ranges::find_if(reached, [this](Rank r) { return holds_up(r); });
    end = end == reached.end() ? std::ranges::find_if(reached, ends) : end;
    std::vector<Rank> chain;
    if (end == reached.end()) {
      Rank next = rank;
      while (std::ranges::find(chain, next) == chain.end()) {
        chain.push_back(next);
        next = waiting_for(next).front();
      }
      chain.push_back(next);
      return chain;
    }
    for (Rank r = *end; r != rank; r = reached_from.at(r)) {
      chain.push_back(r);
    }
    chain.push_back(rank);
    std::ranges::reverse(chain);
    return chain;
  }

  [[nodiscard]] bool holds_up(Rank rank) const {
    return is_silent(rank) && waiting_for(rank).empty();
  }

  /// What the rank is in; null between its instructions.
  [[nodiscard]] const Instruction* instruction(Rank rank) const {
    const auto found = silent_.find(rank);
    if (found == silent_.end() || !found->second->status ||
        found->second->status->instruction < 0 || rank.index() >= plan_->ranks.size()) {
      return nullptr;
    }
    const auto& instructions = plan_->ranks[rank.index()].instructions;
    const auto position = static_cast<std::size_t>(found->second->status->instruction);
    return position < instructions.size() ? &instructions[position] : nullptr;
  }

  /// "rank 2 has been in "i9 run 2W3" for 2.5 s", or what else is known.
  [[nodiscard]] std::string describe(Rank rank) const {
    if (!is_silent(rank)) {
      return rank == kDriver ? std::string("the driver has sent what it had")
                             : fmt::format("{} has answered and is in none of its instructions",
                                           peer_name(rank));
    }
    if (!silent_.at(rank)->status) {
      return fmt::format("{} says nothing, and neither does its agent", peer_name(rank));
    }
    const Instruction* in = instruction(rank);
    return in == nullptr ? fmt::format("{} is in none of its instructions", peer_name(rank))
                         : fmt::format("{} has been in \"{}\" for {:.1f} s",
                                       peer_name(rank),
                                       to_string(*in),
                                       seconds(rank));
  }

 private:
  const Plan* plan_;
  std::map<Rank, const SilentRank*> silent_;
};

/// The chain to tell: one that ends at the rank to blame (LS-1), the longest of these; else the
/// longest of all.
std::vector<Rank> chain_to_tell(const Waits& waits, const std::vector<SilentRank>& silent) {
  std::vector<std::vector<Rank>> chains;
  std::map<Rank, int> held_up;
  for (const SilentRank& s : silent) {
    chains.push_back(waits.chain_from(s.rank));
    if (waits.holds_up(chains.back().back())) {
      ++held_up[chains.back().back()];
    }
  }
  const auto weight = [&](const std::vector<Rank>& chain) {
    const auto found = held_up.find(chain.back());
    const bool blames = found != held_up.end();
    return std::tuple(
        blames ? found->second : 0, blames ? waits.seconds(chain.back()) : 0.0, chain.size());
  };
  return *std::ranges::max_element(chains, {}, weight);
}

std::string chain_text(const Waits& waits, const std::vector<Rank>& chain) {
  std::string text;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    std::vector<std::string> names;
    for (const Rank rank : waits.waiting_for(chain[i])) {
      names.push_back(peer_name(rank));
    }
    text += fmt::format("{}, waiting for {}; ", waits.describe(chain[i]), fmt::join(names, ", "));
  }
  const Rank last = chain.back();
  const bool bites = std::ranges::count(chain, last) > 1;
  return text + (bites                  ? fmt::format("so {} waits for itself", peer_name(last))
                 : waits.holds_up(last) ? waits.describe(last) + " and waits for nobody"
                                        : waits.describe(last));
}

ErrorContext place_at(const Waits& waits, Rank rank) {
  ErrorContext place;
  if (const Instruction* instruction = waits.instruction(rank)) {
    place = place_of(*instruction);
    place.task = to_string(*instruction);
  }
  place.rank = rank;
  return place;
}

}  // namespace

Error late_step(std::vector<SilentRank> silent,
                const Plan& plan,
                std::chrono::milliseconds deadline) {
  std::ranges::sort(silent, {}, &SilentRank::rank);
  const std::string late = fmt::format("the step was not done within {} ms", deadline.count());
  if (silent.empty()) {
    return {Errc::ClusterTimeout, late + ", but is by now; set a longer step_deadline"};
  }
  const Waits waits(silent, plan);
  const std::vector<Rank> chain = chain_to_tell(waits, silent);
  const Rank end = chain.back();
  std::vector<std::string> others;
  for (const SilentRank& s : silent) {
    if (std::ranges::find(chain, s.rank) == chain.end()) {
      others.push_back(to_string(s.rank));
    }
  }
  Error error(
      Errc::ClusterTimeout,
      fmt::format(
          "{}: {}{}; find out what holds {} up, or set a longer step_deadline",
          late,
          chain_text(waits, chain),
          others.empty() ? "" : fmt::format("; not done either: rank {}", fmt::join(others, ", ")),
          waits.holds_up(end) ? peer_name(end) : "them"));
  if (waits.holds_up(end)) {
    error.with(place_at(waits, end));
  }
  return error;
}

}  // namespace stagecraft
