/// AgentAnswers records which agents of a trainer's ranks were asked, and the last answer of each.
///
/// The driver keeps it; it has no actor and no clock of its own. A rank owes an answer from the
/// question on.
/// RC-1: a rank has at most one open question. A silent rank collects no more of them, and its debt
///       is as old as its silence.
/// RC-2: an answer belongs to the step in which its question was asked, or is dropped.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "stagecraft/actors/driver/wait_graph.h"

namespace stagecraft {

class AgentAnswers {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit AgentAnswers(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  /// Forgets the answers of the step before.
  void begin_step(Submission submission) {
    if (anything_said_) {
      for (Entry& entry : ranks_) {
        entry.status.reset();
      }
    }
    anything_said_ = false;
    submission_ = submission;
  }

  /// Returns whether to ask the rank now; false while it owes an answer.
  [[nodiscard]] bool ask(Rank rank, Time now) {
    std::optional<Time>& owes_since = ranks_[rank.index()].owes_since;
    return !owes_since && (owes_since = now, true);
  }

  /// Records the answer to a question of this submission's step; nothing if the rank can no longer
  /// answer.
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
