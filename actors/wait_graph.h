/// WaitGraph: who waits for whom in a step, and for what, from what the ranks' agents said.
///
///   rank 0 waits for 1B3 from rank 1, which waits for 2B3 from rank 2, silent since 4.1 s
///
/// Made by late_step and LostWorkers of what the driver knows when a step goes wrong; a value, that
/// views the plan and the ranks.
/// WG-1: a chain of waits ends at a rank that waits for nobody, or is silent: what it waited for
///       when it was last heard may be over.
/// WG-2: a task is told as begun where its rank was seen in it or behind it, or a peer has taken
///       what the rank sent behind it. The rank may have come further.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/messages.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// A rank that has not answered its order.
struct UnfinishedRank {
  Rank rank;
  std::optional<StatusReply> status = std::nullopt;  ///< its agent's last word in this step
  /// Seconds for which its agent has owed an answer; absent where it answers.
  std::optional<double> silent_for = std::nullopt;
};

class WaitGraph {
 public:
  WaitGraph(const std::vector<UnfinishedRank>& unfinished, const Plan& plan);

  /// Null for a rank that has answered its order.
  [[nodiscard]] const UnfinishedRank* find(Rank rank) const;
  [[nodiscard]] bool is_silent(Rank rank) const;
  /// Keeps WG-1.
  [[nodiscard]] std::vector<Rank> waiting_for(Rank rank) const;
  /// Unfinished, and waits for nobody.
  [[nodiscard]] bool holds_up(Rank rank) const;
  [[nodiscard]] double seconds_in_instruction(Rank rank) const;

  /// From `rank` on, each waiting for the next: the shortest way to a rank that holds others up,
  /// else to any other end, else until one comes twice.
  [[nodiscard]] std::vector<Rank> chain_from(Rank rank) const;
  /// The longest chain that ends at `rank`, each the shortest from where it begins; `rank` alone
  /// where nobody waits for it.
  [[nodiscard]] std::vector<Rank> chain_to(Rank rank) const;

  /// "rank 0 waits for 1B3 from rank 1, which waits for 2B3 from rank 2": every wait of the chain,
  /// without its end. Empty for a chain of one.
  [[nodiscard]] std::string text(const std::vector<Rank>& chain) const;

  /// What the rank was in when its agent spoke; null between its instructions.
  [[nodiscard]] const Instruction* instruction(Rank rank) const;
  /// The last task that the rank is known to have begun, by its own word and by what unfinished
  /// peers have taken of it (WG-2).
  [[nodiscard]] std::optional<Task> last_begun(Rank rank) const;

 private:
  using Ways = std::map<Rank, Rank>;  ///< whom a rank was reached from

  [[nodiscard]] std::vector<Rank> reach(Rank rank, Ways& from) const;
  [[nodiscard]] std::string wait_text(Rank rank) const;
  [[nodiscard]] const Instruction* sender_of(const Instruction& receive) const;
  [[nodiscard]] std::int64_t last_sent(Rank rank) const;

  const Plan* plan_;
  std::map<Rank, const UnfinishedRank*> unfinished_;
};

}  // namespace stagecraft
