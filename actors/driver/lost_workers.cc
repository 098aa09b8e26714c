#include "stagecraft/actors/driver/lost_workers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/driver/recovery_advice.h"

namespace stagecraft {

namespace {

std::string loss_text(Rank rank, const std::string& cause) {
  return fmt::format(
      "{} is lost: {}", peer_name(rank), cause.empty() ? "its worker has ended" : cause);
}

}  // namespace

Error lost_worker(Rank rank, const std::string& cause, std::string_view recovery_advice) {
  Error error(Errc::WorkerLost, loss_text(rank, cause));
  error.advise(fmt::format("cluster.replace(Rank({})), then {}", rank.value, recovery_advice));
  return error.with({.rank = rank});
}

void LostWorkers::add(Rank rank, Clock::Time deadline) {
  ranks_.push_back(rank);
  if (!causes_.contains(rank)) {
    deadlines_[rank] = deadline;
  }
}

void LostWorkers::learn(Rank rank, std::string cause) {
  if (!cause.empty() || !causes_.contains(rank)) {
    causes_[rank] = std::move(cause);
  }
  deadlines_.erase(rank);
}

std::optional<Clock::Time> LostWorkers::awaited_until(Clock::Time now) const {
  std::optional<Clock::Time> last;
  for (const auto& [rank, deadline] : deadlines_) {
    if (deadline > now) {
      last = std::max(last.value_or(deadline), deadline);
    }
  }
  return last;
}

bool LostWorkers::has(Rank rank) const {
  return std::ranges::find(ranks_, rank) != ranks_.end();
}

std::string LostWorkers::cause_of(Rank rank) const {
  const auto found = causes_.find(rank);
  return found == causes_.end() ? "" : found->second;
}

std::string LostWorkers::what_happened(Rank rank) const {
  return loss_text(rank, cause_of(rank));
}

/// Returns "cluster.replace(Rank(1)), then trainer.load(file)".
std::string LostWorkers::recovery_advice(const std::vector<Rank>& lost) const {
  std::vector<std::string> calls;
  for (const Rank rank : lost) {
    calls.push_back(fmt::format("cluster.replace(Rank({}))", rank.value));
  }
  return fmt::format("{}, then {}", fmt::join(calls, ", "), stagecraft::recovery_advice(mirrored_));
}

/// Returns "; not done either: rank 3, 4", for the ranks that are not in the chain.
std::string LostWorkers::others_text(const std::vector<UnfinishedRank>& unfinished,
                                     const std::vector<Rank>& chain) const {
  std::vector<std::string> late, silent;
  for (const UnfinishedRank& u : unfinished) {
    if (std::ranges::find(chain, u.rank) == chain.end() && !has(u.rank)) {
      (u.silent_for ? silent : late).push_back(to_string(u.rank));
    }
  }
  return (silent.empty() ? "" : fmt::format("; silent: rank {}", fmt::join(silent, ", "))) +
         (late.empty() ? "" : fmt::format("; not done either: rank {}", fmt::join(late, ", ")));
}

Error LostWorkers::error_of(Rank rank) const {
  return lost_worker(rank, cause_of(rank), stagecraft::recovery_advice(mirrored_));
}

Error LostWorkers::error_in_step(std::vector<UnfinishedRank> unfinished, const Plan& plan) const {
  for (UnfinishedRank& u : unfinished) {
    if (has(u.rank)) {
      u.silent_for = u.silent_for.value_or(0.0);  // keeps WG-1: chains end at it
    }
  }
  const WaitGraph waits(unfinished, plan, in_order_);
  const Rank first = ranks_.front();
  std::string text = what_happened(first);
  const std::optional<Task> task = in_order_ ? waits.last_begun(first) : std::nullopt;
  if (waits.find(first) == nullptr) {
    text += ", after it had done its part of the step";
  } else if (task) {
    text += fmt::format("; the last task that it is known to have begun is {}", to_string(*task));
  } else if (in_order_) {
    text += "; it is not known to have begun a task of this step";
  }
  const std::vector<Rank> chain = waits.chain_to(first);
  text += "; " + (chain.size() > 1 ? waits.text(chain) : "nobody is known to wait for it yet");
  for (std::size_t i = 1; i < ranks_.size(); ++i) {
    text += "; " + what_happened(ranks_[i]);
  }
  text += others_text(unfinished, chain);
  Error error(Errc::WorkerLost, std::move(text));
  error.advise(recovery_advice(ranks_));
  ErrorContext place{.rank = first};
  if (task) {
    place.stage = task->stage;
    place.microbatch = task->microbatch;
    place.task = to_string(*task);
  }
  return error.with(place);
}

Error LostWorkers::refusal() const {
  std::vector<std::string> losses;
  for (const Rank rank : ranks_) {
    losses.push_back(what_happened(rank));
  }
  Error error(Errc::WorkerLost, fmt::format("no step is run: {}", fmt::join(losses, "; ")));
  error.advise(recovery_advice(ranks_));
  return error.with({.rank = ranks_.front()});
}

}  // namespace stagecraft
