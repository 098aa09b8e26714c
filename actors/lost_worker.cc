#include "stagecraft/actors/lost_worker.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

std::string what_happened(const LostRank& lost) {
  return fmt::format("{} is lost: {}",
                     peer_name(lost.rank),
                     lost.cause.empty() ? "its worker has ended" : lost.cause);
}

std::vector<Rank> ranks_of(const std::vector<LostRank>& lost) {
  std::vector<Rank> ranks;
  for (const LostRank& l : lost) {
    ranks.push_back(l.rank);
  }
  return ranks;
}

/// "; not done either: rank 3, 4", of those the chain does not name.
std::string others_text(const std::vector<UnfinishedRank>& unfinished,
                        const std::vector<LostRank>& lost,
                        const std::vector<Rank>& chain) {
  std::vector<std::string> late, silent;
  for (const UnfinishedRank& u : unfinished) {
    if (std::ranges::find(chain, u.rank) == chain.end() &&
        std::ranges::find(lost, u.rank, &LostRank::rank) == lost.end()) {
      (u.silent_for ? silent : late).push_back(to_string(u.rank));
    }
  }
  return (silent.empty() ? "" : fmt::format("; silent: rank {}", fmt::join(silent, ", "))) +
         (late.empty() ? "" : fmt::format("; not done either: rank {}", fmt::join(late, ", ")));
}

}  // namespace

std::string way_back(const std::vector<Rank>& lost) {
  std::vector<std::string> calls;
  for (const Rank rank : lost) {
    calls.push_back(fmt::format("cluster.replace(Rank({}))", rank.value));
  }
  return fmt::format("{}, then trainer.load(file)", fmt::join(calls, ", "));
}

Error lost_worker(const LostRank& lost) {
  Error error(Errc::WorkerLost,
              fmt::format("{}; to go on: {}", what_happened(lost), way_back({lost.rank})));
  return error.with({.rank = lost.rank});
}

Error lost_worker(const std::vector<LostRank>& lost,
                  std::vector<UnfinishedRank> unfinished,
                  const Plan& plan) {
  for (UnfinishedRank& u : unfinished) {
    if (std::ranges::find(lost, u.rank, &LostRank::rank) != lost.end()) {
      u.silent_for = u.silent_for.value_or(0.0);  // keeps WG-1: chains end at it
    }
  }
  const WaitGraph waits(unfinished, plan);
  const LostRank& first = lost.front();
  std::string text = what_happened(first);
  const std::optional<Task> task = waits.last_begun(first.rank);
  if (waits.find(first.rank) == nullptr) {
    text += ", after it had done its part of the step";
  } else if (task) {
    text += fmt::format("; the last task that it is known to have begun is {}", to_string(*task));
  } else {
    text += "; it is not known to have begun a task of this step";
  }
  const std::vector<Rank> chain = waits.chain_to(first.rank);
  text += "; " + (chain.size() > 1 ? waits.text(chain) : "nobody is known to wait for it yet");
  for (std::size_t i = 1; i < lost.size(); ++i) {
    text += "; " + what_happened(lost[i]);
  }
  text += others_text(unfinished, lost, chain);
  Error error(Errc::WorkerLost, fmt::format("{}; to go on: {}", text, way_back(ranks_of(lost))));
  ErrorContext place{.rank = first.rank};
  if (task) {
    place.stage = task->stage;
    place.microbatch = task->microbatch;
    place.task = to_string(*task);
  }
  return error.with(place);
}

}  // namespace stagecraft
