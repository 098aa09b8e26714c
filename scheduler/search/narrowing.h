/// Narrowing: brings what the best order takes and what none can go below together.
///
///     lower                          upper - 1   upper
///       |  none ends by here   ...?     |    ...   |  the best order so far
///
/// Asks OrderSearch whether an order ends by a time in between, each question for a share of
/// states. One that is left open leaves a gap: above it orders are looked for, below it proofs;
/// when both are through, the share grows. What failed is remembered, so a question asked again
/// goes on. Not shared between threads.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "stagecraft/scheduler/search/order_search.h"
#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

class Narrowing {
 public:
  struct Limits {
    std::size_t states;
    /// Asked now and then; false ends it. Told what is known of the makespan.
    std::function<bool(Ticks lower, Ticks upper)> keep_going;
  };

  /// `upper`: what the best order known takes. `problem` must outlive this.
  Narrowing(const SearchProblem& problem, Ticks upper, Limits limits);
  Narrowing(const Narrowing&) = delete;  // its search calls back
  Narrowing& operator=(const Narrowing&) = delete;

  void run();

  [[nodiscard]] Ticks lower() const { return lower_; }
  [[nodiscard]] Ticks upper() const { return upper_; }
  [[nodiscard]] std::size_t states() const { return search_.states(); }
  /// Lanes by device; empty where nothing better than the first `upper` was found.
  [[nodiscard]] const std::vector<std::vector<int>>& order() const { return order_; }

 private:
  [[nodiscard]] bool may_go_on() const;
  void look_for_orders(std::size_t share);
  void look_for_proofs(std::size_t share);
  /// Whether the question had an answer.
  bool ask(Ticks horizon, std::size_t share);

  Limits limits_;
  OrderSearch search_;
  Ticks lower_;
  Ticks upper_;
  Ticks open_;  ///< the least horizon that look_for_orders() left open
  std::vector<std::vector<int>> order_;
};

}  // namespace stagecraft
