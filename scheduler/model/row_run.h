/// RowRun runs lists of entries side by side. Each list runs from left to right until it must wait
/// for an entry of another list; the run ends when all lists have ended or are stuck.
///
/// Entries are numbered row by row. A row waits for one entry at a time and wakes when that entry
/// has run, so a linked list through the rows is the only bookkeeping. A RowRun is made once for
/// the entries and run any number of times: a run costs only the entries that it looks at. It is
/// not shared between threads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stagecraft {

class RowRun {
 public:
  static constexpr int kNothing = -1;

  RowRun(std::size_t entries, std::size_t rows)
      : first_waiter_(entries, kNothing), next_waiter_(rows, kNothing) {}

  /// Runs each row from `position` up to `end` and returns how many entries ran. `awaited(entry)`
  /// returns an entry that must run before this one, or kNothing. `ran(entry)` is called after an
  /// entry has run. Requires: `awaited` names no entry that has run.
  template <class Awaited, class Ran>
  std::size_t operator()(std::vector<int> position,
                         std::span<const int> end,
                         Awaited&& awaited,
                         Ran&& ran);

 private:
  std::vector<int> first_waiter_;  ///< by entry: a row that waits for it
  std::vector<int> next_waiter_;   ///< by row: the next row that waits for the same entry
  std::vector<int> runnable_;
  std::vector<int> awaited_;  ///< the entries that have waiters
};

template <class Awaited, class Ran>
std::size_t RowRun::operator()(std::vector<int> position,
                               std::span<const int> end,
                               Awaited&& awaited,
                               Ran&& ran) {
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  for (const int entry : awaited_) {
    first_waiter_[index(entry)] = kNothing;  // rows that were stuck in the last run
  }
  awaited_.clear();
  for (std::size_t row = position.size(); row > 0; --row) {
    runnable_.push_back(static_cast<int>(row) - 1);
  }
  std::size_t count = 0;
  while (!runnable_.empty()) {
    const int row = runnable_.back();
    runnable_.pop_back();
    for (int& at = position[index(row)]; at < end[index(row)]; ++at) {
      const int entry = awaited(at);
      if (entry != kNothing) {
        next_waiter_[index(row)] = first_waiter_[index(entry)];
        first_waiter_[index(entry)] = row;
        awaited_.push_back(entry);
        break;
      }
      ran(at);
      ++count;
      for (int w = first_waiter_[index(at)]; w != kNothing; w = next_waiter_[index(w)]) {
        runnable_.push_back(w);
      }
    }
  }
  return count;
}

}  // namespace stagecraft
