/// On says where a remote actor runs, and how: `sc::on(Rank(2)).concurrency(4)`.
#pragma once

#include <chrono>
#include <cstdint>

#include "stagecraft/base/ids.h"

namespace stagecraft {

class On {
 public:
  explicit On(Rank rank) : rank_(rank) {}

  /// Sets how many threads run the actor's calls; then calls may overlap, and the class must be
  /// ready for that. 1 unless set: calls run one after the other, in order.
  On& concurrency(int threads) {
    concurrency_ = threads;
    return *this;
  }
  /// Sets how many calls may be under way. A further call waits for an earlier one to end. 1024
  /// unless set.
  On& most_calls(int calls) {
    most_calls_ = calls;
    return *this;
  }
  /// Sets the time after which a call fails with ClusterTimeout, from its beginning. 10 minutes
  /// unless set.
  On& limit(std::chrono::milliseconds limit) {
    limit_ = limit;
    return *this;
  }

  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] int concurrency() const { return concurrency_; }
  [[nodiscard]] int most_calls() const { return most_calls_; }
  [[nodiscard]] std::chrono::milliseconds limit() const { return limit_; }

 private:
  Rank rank_;
  int concurrency_ = 1;
  int most_calls_ = 1024;
  std::chrono::milliseconds limit_{std::chrono::minutes(10)};
};

[[nodiscard]] inline On on(Rank rank) {
  return On(rank);
}

}  // namespace stagecraft
