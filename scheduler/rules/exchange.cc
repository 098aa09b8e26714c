#include "stagecraft/scheduler/rules/exchange.h"

#include <algorithm>
#include <utility>

namespace stagecraft::rules {
namespace {

constexpr std::size_t kMaxSteps = 5'000'000;  // cells looked at over all tries: half a second
constexpr int kNobody = -1;

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// Runs the lists with two cells exchanged, again and again, from where a first run got stuck. A
/// try that fails gets stuck soon, so it costs little however long the schedule is.
class Rerun {
 public:
  Rerun(const Input& in, std::vector<bool> done);

  /// Whether all entries run with `a` and `b` exchanged. Requires: one row; neither was done.
  bool succeeds(int a, int b);
  [[nodiscard]] std::size_t steps() const { return steps_; }

 private:
  [[nodiscard]] int exchanged(int e) const { return e == a_ ? b_ : e == b_ ? a_ : e; }
  [[nodiscard]] bool is_done(int e) const { return done_[index(e)] || ran_[index(e)] == try_; }
  [[nodiscard]] int first_unmet(int e) const;
  void run_row(int row);

  const Input& in_;
  std::vector<bool> done_;
  std::vector<int> start_;  // by row: the first entry that is not done
  std::size_t stuck_;
  int a_ = 0;
  int b_ = 0;
  unsigned try_ = 0;
  std::vector<unsigned> ran_;      // the try in which an entry ran last
  std::vector<unsigned> awaited_;  // the try in which some row waited for an entry last
  std::vector<int> first_waiter_;
  std::vector<int> next_waiter_;
  std::vector<int> position_;
  std::vector<int> runnable_;
  std::size_t count_ = 0;
  std::size_t steps_ = 0;
};

Rerun::Rerun(const Input& in, std::vector<bool> done)
    : in_(in),
      done_(std::move(done)),
      stuck_(static_cast<std::size_t>(std::ranges::count(done_, false))),
      ran_(done_.size(), 0),
      awaited_(done_.size(), 0),
      first_waiter_(done_.size(), kNobody),
      next_waiter_(index(in.tasks.rows()), kNobody) {
  for (int row = 0; row < in.tasks.rows(); ++row) {
    int at = in.tasks.row_begin(row);
    while (at < in.tasks.row_end(row) && done_[index(at)]) {
      ++at;
    }
    start_.push_back(at);
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

void Rerun::run_row(int row) {
  for (int& at = position_[index(row)]; at < in_.tasks.row_end(row); ++at) {
    ++steps_;
    const int unmet = first_unmet(at);
    if (unmet != TaskGraph::kMissing) {
      const bool first = awaited_[index(unmet)] != try_;
      next_waiter_[index(row)] = first ? kNobody : first_waiter_[index(unmet)];
      first_waiter_[index(unmet)] = row;
      awaited_[index(unmet)] = try_;
      return;
    }
    ran_[index(at)] = try_;
    ++count_;
    if (awaited_[index(at)] == try_) {
      for (int w = first_waiter_[index(at)]; w != kNobody; w = next_waiter_[index(w)]) {
        runnable_.push_back(w);
      }
    }
  }
}

bool Rerun::succeeds(int a, int b) {
  a_ = a;
  b_ = b;
  ++try_;
  count_ = 0;
  position_ = start_;
  runnable_.clear();
  for (int row = 0; row < in_.tasks.rows(); ++row) {
    runnable_.push_back(row);
  }
  while (!runnable_.empty()) {
    const int row = runnable_.back();
    runnable_.pop_back();
    run_row(row);
  }
  return count_ == stuck_;
}

}  // namespace

std::optional<Exchange> find_exchange(const Input& in,
                                      std::vector<int> cycle,
                                      const std::vector<bool>& done) {
  std::ranges::sort(cycle);  // upper rows and early cells first, wherever the cycle was entered
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
            continue;  // a pair within the cycle is tried once
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
