/// ActorRounds lets actors on all ranks of a cluster exchange tensors while one of the ranks is
/// lost, and checks the outcome of every call.
///
/// In a round every actor makes a part, which the actor of the next rank takes. Throws a Violation
/// for a broken promise. Thread: the one that made it.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/remote/remote_actor.h"
#include "stagecraft/futures/future.h"

namespace stagecraft::tests {

/// Exchange makes parts and counts those that it takes.
class Exchange {
 public:
  [[nodiscard]] at::Tensor part(std::int64_t number) const;
  /// Returns the part's number. Throws if it is not whole.
  std::int64_t take(const at::Tensor& part);
  [[nodiscard]] std::int64_t taken() const { return taken_; }

  using Remote = stagecraft::Remote<Exchange(), &Exchange::part, &Exchange::take, &Exchange::taken>;

 private:
  std::int64_t taken_ = 0;
};

class ActorRounds {
 public:
  explicit ActorRounds(const Cluster& cluster);

  /// Begins calls that are under way when this returns.
  void begin(int rounds);
  /// Waits for the outcomes. Calls that need none of `lost` succeed with the right value, once.
  /// Others do so or fail with WorkerLost and its rank. No outcome comes later than `limit`.
  void check(const std::vector<Rank>& lost, std::chrono::milliseconds limit);
  /// Makes actors on these ranks, which have new workers.
  void replace(const std::vector<Rank>& lost);

 private:
  struct Call {
    Rank maker, taker;
    std::int64_t number = 0;
    Future<std::int64_t> outcome;
  };

  [[nodiscard]] Rank next(Rank rank) const;
  void check_counts(const std::vector<Rank>& lost, Deadline deadline);

  const Cluster cluster_;
  std::vector<RemoteActor<Exchange>> actors_;  ///< by rank
  std::vector<std::int64_t> taken_;            ///< by rank: calls of take() that succeeded
  std::vector<Call> calls_;
  std::int64_t number_ = 0;
};

}  // namespace stagecraft::tests
