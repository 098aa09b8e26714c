#include "stagecraft/actors/trainer/rank_statuses.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "stagecraft/actors/driver/driver.h"
#include "stagecraft/actors/driver/late_step.h"
#include "stagecraft/base/clock.h"

namespace stagecraft {
namespace {

/// The longest wait for the status of a rank: agents never compute.
constexpr std::chrono::seconds kStatusLimit{30};

RankStatus status_of(const StatusReply& reply, const KnownPrograms& programs) {
  RankStatus status{.answers = true, .seconds = reply.seconds, .waiting_for = reply.waiting_for};
  for (const std::int32_t route : reply.routes) {
    status.routes.push_back(static_cast<Route>(route));
  }
  const Plan& plan = programs.plan(reply.program);
  const auto& instructions = plan.list_of(reply.rank).instructions;
  if (reply.instruction >= 0 && static_cast<std::size_t>(reply.instruction) < instructions.size()) {
    status.instruction = to_string(plan.ranks[reply.rank.index()],
                                   instructions[static_cast<std::size_t>(reply.instruction)]);
  }
  return status;
}

}  // namespace

std::vector<RankStatus> rank_statuses(Crew& crew, const KnownPrograms& programs) {
  std::vector<RankStatus> result;
  for (const std::optional<StatusReply>& reply : crew.status(kStatusLimit)) {
    RankStatus status = reply ? status_of(*reply, programs) : RankStatus{.answers = false};
    status.rank = Rank(result.size());
    result.push_back(std::move(status));
  }
  return result;
}

std::string waits_in_words(Crew& crew, const KnownPrograms& programs, bool in_order) {
  const Clock::Time asked = Clock::current()->now();
  const std::vector<std::optional<StatusReply>> replies = crew.status(kAskLimit);
  const std::chrono::duration<double> waited = Clock::current()->now() - asked;
  const auto busy = std::ranges::find_if(
      replies, [](const auto& reply) { return reply && reply->instruction >= 0; });
  // The ranks were not asked in the same instant: some may be in another program by now.
  const std::int32_t program = busy == replies.end() ? kTraining : (*busy)->program;
  std::vector<UnfinishedRank> unfinished;
  for (std::size_t r = 0; r < replies.size(); ++r) {
    const std::optional<StatusReply>& reply = replies[r];
    if (!reply) {  // perhaps the only one that has not ended its part of the step
      unfinished.push_back({.rank = Rank(r), .silent_for = waited.count()});
    } else if (reply->instruction >= 0 && reply->program == program) {
      unfinished.push_back({.rank = Rank(r), .status = reply});
    }
  }
  return unfinished.empty() ? "" : wait_sentence(unfinished, programs.plan(program), in_order);
}

}  // namespace stagecraft
