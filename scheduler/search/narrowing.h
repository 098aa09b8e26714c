/// Narrowing brings the makespan of the best order and the lower bound together.
///
///     lower                          upper - 1   upper
///       |  none ends by here   ...?     |    ...   |  the best order so far
///
/// It asks OrderSearch whether an order ends by a time in between, and limits each question to a
/// share of states. A question without an answer leaves a gap. Above the gap Narrowing looks for
/// orders, below it for proofs; when both are done, the share grows. It remembers failures, so a
/// repeated question continues. It is not shared between threads.
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
    /// Called from time to time with the bounds of the makespan; false ends the search.
    std::function<bool(Ticks lower, Ticks upper)> keep_going;
  };

  /// `upper`: the makespan of the best order known. `problem` must outlive this object.
  Narrowing(const SearchProblem& problem, Ticks upper, Limits limits);
  Narrowing(const Narrowing&) = delete;  // the search holds a reference to this
  Narrowing& operator=(const Narrowing&) = delete;

  void run();

  [[nodiscard]] Ticks lower() const { return lower_; }
  [[nodiscard]] Ticks upper() const { return upper_; }
  [[nodiscard]] std::size_t states() const { return search_.states(); }
  /// Returns lanes by device; empty if nothing better than the first `upper` was found.
  [[nodiscard]] const std::vector<std::vector<int>>& order() const { return order_; }

 private:
  [[nodiscard]] bool may_go_on() const;
  void look_for_orders(std::size_t share);
  void look_for_proofs(std::size_t share);
  /// Asks OrderSearch. Returns whether the question had an answer.
  bool ask(Ticks horizon, std::size_t share);

  Limits limits_;
  OrderSearch search_;
  Ticks lower_;
  Ticks upper_;
  Ticks open_;  ///< the least horizon that look_for_orders() left open
  std::vector<std::vector<int>> order_;
};

}  // namespace stagecraft
