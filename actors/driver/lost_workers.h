/// LostWorkers holds the ranks of one driver whose workers have ended, and makes the errors about
/// them: the cause, the last task that a rank is known to have begun, the ranks that wait for it,
/// and the way to continue.
///
///   rank 1 is lost: process 4711 was killed by signal 9 (Killed); the last task that it is known
///   to have begun is 1B3; rank 2 waits for 0B3 from rank 0, which waits for 1B3 from rank 1;
///   to continue: cluster.replace(Rank(1)), then trainer.load(file)
///
/// A driver holds it; it has no actor and no clock.
/// LW-1: a cause may come before the loss or after it. After a loss it is awaited until a deadline,
///       and then counts as unknown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/driver/wait_graph.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Returns a WorkerLost about one rank: "rank 1 is lost: process 4711 was killed by signal 9
/// (Killed); to continue: cluster.replace(Rank(1)), then trainer.load(file)". `cause`: the cause,
/// as a clause; empty if unknown.
[[nodiscard]] Error lost_worker(Rank rank,
                                const std::string& cause,
                                std::string_view recovery_advice);

class LostWorkers {
 public:
  /// `mirrored`: neighbors keep copies of states. `in_order`: ranks follow the order of their
  /// lists, which tells what a lost one had begun.
  explicit LostWorkers(bool mirrored, bool in_order = true)
      : mirrored_(mirrored), in_order_(in_order) {}

  /// Adds a lost rank. Its cause is awaited until `deadline`, unless it is known.
  void add(Rank rank, Clock::Time deadline);
  /// Records the cause of the end of a rank's worker; empty if nobody knows more than before.
  void learn(Rank rank, std::string cause);

  /// Returns the time at which the wait for causes ends: the last deadline of a lost rank whose
  /// cause is not known. Returns nothing if no cause is awaited at `now`.
  [[nodiscard]] std::optional<Clock::Time> awaited_until(Clock::Time now) const;

  [[nodiscard]] bool has(Rank rank) const;
  /// Returns the lost ranks in the order of their ends.
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }

  /// Returns a WorkerLost about a rank that was lost between two steps, or about which nothing else
  /// is known.
  [[nodiscard]] Error error_of(Rank rank) const;

  /// Returns a WorkerLost about all of them, with the first one's rank and the place of its last
  /// task. `unfinished` holds all ranks that have not answered their order, a lost rank with the
  /// last status that its agent sent.
  /// Requires: a rank is lost.
  [[nodiscard]] Error error_in_step(std::vector<UnfinishedRank> unfinished, const Plan& plan) const;

  /// Returns the reason why no step runs from now on, with all causes. Requires: a rank is lost.
  [[nodiscard]] Error refusal() const;

 private:
  /// Returns the cause; "" while it is unknown.
  [[nodiscard]] std::string cause_of(Rank rank) const;
  [[nodiscard]] std::string what_happened(Rank rank) const;
  [[nodiscard]] std::string recovery_advice(const std::vector<Rank>& lost) const;
  [[nodiscard]] std::string others_text(const std::vector<UnfinishedRank>& unfinished,
                                        const std::vector<Rank>& chain) const;

  bool mirrored_;
  bool in_order_;
  std::vector<Rank> ranks_;
  std::map<Rank, std::string> causes_;
  std::map<Rank, Clock::Time> deadlines_;  ///< of lost ranks whose causes are not known
};

}  // namespace stagecraft
