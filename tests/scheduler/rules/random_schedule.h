/// RandomSchedule makes schedules of random graphs, valid and broken ones. A second, slow
/// implementation of the rules about columns says what is wrong with them.
#pragma once

#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft::test {

using Place = std::pair<std::size_t, std::size_t>;  // row, column

class RandomSchedule {
 public:
  explicit RandomSchedule(unsigned seed) : random_(seed) {}

  /// Makes every task of a random graph once, on its stage's row, in random order with a few
  /// bubbles, and joins some cells.
  [[nodiscard]] Schedule make();

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  /// Mixes the row only slightly, so that some schedules are valid.
  void mix(Schedule::Row& row);

  std::mt19937 random_;
};

/// Returns what each task needs, from the text of the rules.
[[nodiscard]] std::vector<Task> needs(const Schedule& schedule,
                                      const std::map<Task, Place>& places,
                                      const Task& task);

[[nodiscard]] std::map<Task, Place> places_of(const Schedule& schedule);

/// Returns the tasks that are too late for another, each with its rule.
[[nodiscard]] std::set<std::tuple<std::string, Task>> late_tasks(const Schedule& schedule);

}  // namespace stagecraft::test
