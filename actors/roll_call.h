/// RollCall: what the agents of a trainer's ranks were asked, and what they said last.
///
/// Kept by the driver; no actor, no clock of its own. A rank owes an answer from the question on.
/// RC-1: one question at a time per rank, so that a silent one collects none, and what it owes is
///       as old as its silence.
/// RC-2: what an agent says belongs to the step in which it was asked, or is dropped.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "stagecraft/actors/wait_graph.h"

namespace stagecraft {

class RollCall {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RollCall(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  /// Forgets what was said in the step before.
  void begin_step(Submission submission) {
    if (anything_said_) {
      for (Entry& entry : ranks_) {
        entry.status.reset();
      }
    }
    anything_said_ = false;
    submission_ = submission;
  }

  /// Whether the rank is to be asked now; false while it owes an answer.
  [[nodiscard]] bool ask(Rank rank, Time now) {
    std::optional<Time>& owes_since = ranks_[rank.index()].owes_since;
    return !owes_since && (owes_since = now, true);
  }

  /// Asked in the step of this submission; nothing where the rank cannot answer any more.
  void said(Rank rank, Submission submission, std::optional<StatusReply> status) {
    Entry& entry = ranks_[rank.index()];
    entry.owes_since.reset();
    if (submission == submission_ && status) {
      entry.status = std::move(status);
      anything_said_ = true;
    }
  }

  [[nodiscard]] bool owes(Rank rank) const { return ranks_[rank.index()].owes_since.has_value(); }

  [[nodiscard]] std::vector<UnfinishedRank> of(const std::vector<Rank>& unfinished,
                                               Time now) const {
    std::vector<UnfinishedRank> said;
    for (const Rank rank : unfinished) {
      const Entry& entry = ranks_[rank.index()];
      said.push_back({.rank = rank, .status = entry.status});
      if (entry.owes_since) {
        said.back().silent_for = std::chrono::duration<double>(now - *entry.owes_since).count();
      }
    }
    return said;
  }

 private:
  struct Entry {
    std::optional<StatusReply> status;
    std::optional<Time> owes_since;
  };

  std::vector<Entry> ranks_;
  Submission submission_{-1};
  bool anything_said_ = false;
};

}  // namespace stagecraft
