/// WaitGraph holds the waits between ranks in a step, and the values for which they wait, from the
/// reports of the ranks' agents.
///
///   rank 0 waits for 1B3 from rank 1, which waits for 2B3 from rank 2, silent since 4.1 s
///
/// late_step and LostWorkers make it when a step goes wrong, from the facts that the driver has. It
/// is a value that views the plan and the ranks.
/// WG-1: a chain of waits ends at a rank that waits for no rank, or is silent: the wait that it
///       last reported may be over.
/// WG-2: a task counts as begun if its rank was seen in it or after it, or if a peer has received
///       a value that the rank sent after it. The rank may have come further.
/// WG-3: a chain ends also at a rank that is known to have sent the tensor for which the one before
///       waits: the tensor is under way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// UnfinishedRank is a rank that has not answered its order.
struct UnfinishedRank {
  Rank rank;
  std::optional<StatusReply> status = std::nullopt;  ///< the last report of its agent in this step
  /// Seconds for which its agent has owed an answer; absent if it answers.
  std::optional<double> silent_for = std::nullopt;
};

class WaitGraph {
 public:
  /// `in_order`: ranks run their lists in order, which the driver may decide otherwise (Dispatch).
  WaitGraph(const std::vector<UnfinishedRank>& unfinished, const Plan& plan, bool in_order = true);

  /// Returns the unfinished rank; null for a rank that has answered its order.
  [[nodiscard]] const UnfinishedRank* find(Rank rank) const;
  [[nodiscard]] bool is_silent(Rank rank) const;
  /// Returns the ranks for which the rank waits. Keeps WG-1.
  [[nodiscard]] std::vector<Rank> waiting_for(Rank rank) const;
  /// Returns whether the rank is unfinished and waits for no rank.
  [[nodiscard]] bool holds_up(Rank rank) const;
  [[nodiscard]] double seconds_in_instruction(Rank rank) const;

  /// Returns whether the rank waits for a tensor that is known to have been sent.
  [[nodiscard]] bool waits_for_sent(Rank rank) const { return waits_for_sent_.contains(rank); }

  /// Returns the chain from `rank` on, in which each rank waits for the next. It is the shortest
  /// way to a rank that holds others up. If there is none, it ends at any other end (WG-3); if
  /// there is no end, when a rank comes twice.
  [[nodiscard]] std::vector<Rank> chain_from(Rank rank) const;
  /// Returns the longest chain that ends at `rank`; each candidate is the shortest from its begin.
  /// Returns `rank` alone if no rank waits for it.
  [[nodiscard]] std::vector<Rank> chain_to(Rank rank) const;

  /// Returns every wait of the chain, without its end: "rank 0 waits for 1B3 from rank 1, which
  /// waits for 2B3 from rank 2". Empty for a chain of one.
  [[nodiscard]] std::string text(const std::vector<Rank>& chain) const;

  /// Returns the rank's instruction when its agent reported; null between instructions.
  [[nodiscard]] const Instruction* instruction(Rank rank) const;
  /// Returns what instruction() does, in the words of schedules: "2F3", "the vote".
  /// Requires: instruction(rank).
  [[nodiscard]] std::string work(Rank rank) const;
  /// Returns the last task that the rank is known to have begun, by its own report and by the
  /// values that unfinished peers have received from it (WG-2).
  [[nodiscard]] std::optional<Task> last_begun(Rank rank) const;

 private:
  using Ways = std::map<Rank, Rank>;  ///< the rank from which each was reached

  [[nodiscard]] std::vector<Rank> reach(Rank rank, Ways& from) const;
  [[nodiscard]] std::string wait_text(Rank rank) const;
  [[nodiscard]] std::string collective_text(const Instruction& collective) const;
  [[nodiscard]] Rank peer_of(Rank rank, const Instruction& transfer) const;
  [[nodiscard]] const Instruction* sender_of(Rank receiver, const Instruction& receive) const;
  [[nodiscard]] bool was_sent(Rank receiver) const;
  [[nodiscard]] std::int64_t last_sent(Rank rank) const;

  const Plan* plan_;
  std::map<Rank, const UnfinishedRank*> unfinished_;
  std::set<Rank> waits_for_sent_;
};

}  // namespace stagecraft
