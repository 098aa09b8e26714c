#include "stagecraft/scheduler/rules/causes/deadlock_exchange.h"

#include <algorithm>
#include <utility>

namespace stagecraft::rules {
namespace {

constexpr std::size_t kMaxSteps = 5'000'000;  // cells visited over all tries: half a second

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// Runs the lists with two cells exchanged, many times, from where a first run got stuck. A try
/// that fails gets stuck soon, so it costs little even in a long schedule.
class Rerun {
 public:
  Rerun(const RuleInput& in, std::vector<bool> done);

  /// Returns whether all entries run with `a` and `b` exchanged. Requires: one row; neither was
  /// done.
  bool succeeds(int a, int b);
  [[nodiscard]] std::size_t steps() const { return steps_; }

 private:
  [[nodiscard]] int exchanged(int e) const { return e == a_ ? b_ : e == b_ ? a_ : e; }
  [[nodiscard]] bool is_done(int e) const { return done_[index(e)] || ran_[index(e)] == try_; }
  [[nodiscard]] int first_unmet(int e) const;

  const RuleInput& in_;
  std::vector<bool> done_;
  std::vector<int> start_;  // by row: the first entry that is not done
  std::vector<int> end_;
  std::size_t stuck_;
  int a_ = 0;
  int b_ = 0;
  unsigned try_ = 0;
  std::vector<unsigned> ran_;  // by entry: the try in which it ran last
  RowRun run_;
  std::size_t steps_ = 0;
};

Rerun::Rerun(const RuleInput& in, std::vector<bool> done)
    : in_(in),
      done_(std::move(done)),
      stuck_(static_cast<std::size_t>(std::ranges::count(done_, false))),
      ran_(done_.size(), 0),
      run_(done_.size(), index(in.tasks.rows())) {
  for (int row = 0; row < in.tasks.rows(); ++row) {
    int at = in.tasks.row_begin(row);
    while (at < in.tasks.row_end(row) && done_[index(at)]) {
      ++at;
    }
    start_.push_back(at);
    end_.push_back(in.tasks.row_end(row));
  }
}

int Rerun::first_unmet(int e) const {
  int unmet = TaskGraph::kMissing;
  const int moved = exchanged(e);
  for (const Task& task : in_.tasks.entry(moved).cell->tasks()) {
    if (!in_.tasks.in_range(task) ||
        (task.kind == CellKind::Update && in_.tasks.find(task) != moved)) {
      continue;
    }
    in_.tasks.for_each_prerequisite(task, [&](const Task& prerequisite) {
      const int holder = in_.tasks.find(prerequisite);
      if (unmet == TaskGraph::kMissing && holder != TaskGraph::kMissing) {
        const int there = exchanged(holder);
        unmet = there == e || is_done(there) ? TaskGraph::kMissing : there;
      }
    });
  }
  return unmet;
}

bool Rerun::succeeds(int a, int b) {
  a_ = a;
  b_ = b;
  ++try_;
  const std::size_t count = run_(
      start_,
      end_,
      [&](int e) {
        ++steps_;
        return first_unmet(e);
      },
      [&](int e) { ran_[index(e)] = try_; });
  return count == stuck_;
}

}  // namespace

std::optional<Exchange> find_deadlock_exchange(const RuleInput& in,
                                               std::vector<int> cycle,
                                               const std::vector<bool>& done) {
  std::ranges::sort(cycle);  // upper rows and early cells first, wherever the cycle starts
  std::vector<bool> on_cycle(done.size(), false);
  int longest = 0;
  for (const int e : cycle) {
    const int row = in.tasks.entry(e).row;
    on_cycle[index(e)] = true;
    longest = std::max(longest, in.tasks.row_end(row) - in.tasks.row_begin(row));
  }
  Rerun from_stuck(in, done);
  Rerun from_start(in,
                   std::vector<bool>(done.size(), false));  // for pairs with a cell that was done
  std::size_t looked_at = 0;
  for (const bool both : {true, false}) {
    for (int distance = 1; distance < longest; ++distance) {
      for (const int e : cycle) {
        const int row = in.tasks.entry(e).row;
        for (const int other : {e - distance, e + distance}) {
          if (looked_at++ + from_stuck.steps() + from_start.steps() > kMaxSteps) {
            return std::nullopt;
          }
          const bool inside = other >= in.tasks.row_begin(row) && other < in.tasks.row_end(row);
          if (!inside || on_cycle[index(other)] != both || (both && other < e)) {
            continue;  // tries each pair within the cycle once
          }
          if ((done[index(other)] ? from_start : from_stuck).succeeds(e, other)) {
            const int begin = in.tasks.row_begin(row);
            return Exchange{row, std::min(e, other) - begin, std::max(e, other) - begin};
          }
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace stagecraft::rules
