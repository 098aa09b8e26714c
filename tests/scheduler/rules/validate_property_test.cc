/// Compares validate() on random schedules with a second, slow implementation of the rules.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Place = std::pair<std::size_t, std::size_t>;  // row, column

class RandomSchedule {
 public:
  explicit RandomSchedule(unsigned seed) : random_(seed) {}

  /// Makes every task of a random graph once, on its stage's row, in random order with a few
  /// bubbles, and joins some cells.
  Schedule make() {
    const int stages = 1 + below(4);
    std::vector<StageGraph::Edge> edges;
    for (int a = 0; a < stages; ++a) {
      for (int b = a + 1; b < stages; ++b) {
        if (b == a + 1 ? below(4) > 0 : below(4) == 0) {
          edges.emplace_back(a, b);
        }
      }
    }
    const int rows = 1 + below(stages);
    std::vector<Schedule::Row> cells(static_cast<std::size_t>(rows));
    const int microbatches = 1 + below(3);
    for (int s = 0; s < stages; ++s) {
      Schedule::Row& row = cells[static_cast<std::size_t>(s < rows ? s : below(rows))];
      for (int m = 0; m < microbatches; ++m) {
        row.push_back(cells::F(s, m));
        if (below(3) == 0) {
          row.push_back(cells::I(s, m));
          row.push_back(cells::W(s, m));
        } else {
          row.push_back(cells::B(s, m));
        }
      }
    }
    std::size_t width = 0;
    for (Schedule::Row& row : cells) {
      mix(row);
      width = std::max(width, row.size());
    }
    for (Schedule::Row& row : cells) {
      while (row.size() < width + 2) {
        row.insert(row.begin() + below(static_cast<int>(row.size()) + 1), Cell());
      }
    }
    return Schedule(Schedule::Form::Array, cells, {.graph = StageGraph::from_edges(stages, edges)});
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  /// Mixes the row only slightly, so that some schedules are valid.
  void mix(Schedule::Row& row) {
    std::ranges::stable_sort(row, {}, [](const Cell& cell) {
      const Task& task = cell.tasks().front();
      const int stage = task.stage.value;
      return task.kind == CellKind::Forward
                 ? stage
                 : 100 - stage + (task.kind == CellKind::BackwardWeight ? 100 : 0);
    });
    for (int swaps = below(3); swaps > 0 && row.size() > 1; --swaps) {
      std::swap(row[static_cast<std::size_t>(below(static_cast<int>(row.size())))],
                row[static_cast<std::size_t>(below(static_cast<int>(row.size())))]);
    }
    if (below(4) == 0 && row.size() > 2) {
      row[0] = cells::overlap(row[0], row[1]);
      row.erase(row.begin() + 1);
    }
  }

  std::mt19937 random_;
};

/// Returns what each task needs, from the text of the rules.
std::vector<Task> needs(const Schedule& schedule,
                        const std::map<Task, Place>& places,
                        const Task& task) {
  std::vector<Task> list;
  const auto edges = schedule.stage_graph().edges();
  if (task.kind == CellKind::BackwardWeight) {
    return {{CellKind::BackwardInput, task.stage, task.microbatch}};
  }
  for (const auto& [from, to] : edges) {
    if (task.kind == CellKind::Forward && to == task.stage.value) {
      list.push_back({CellKind::Forward, StageId(from), task.microbatch});
    }
    if (task.kind != CellKind::Forward && from == task.stage.value) {
      const Task whole{CellKind::Backward, StageId(to), task.microbatch};
      const Task half{CellKind::BackwardInput, StageId(to), task.microbatch};
      list.push_back(places.contains(half) ? half : whole);
    }
  }
  if (task.kind != CellKind::Forward) {
    list.push_back({CellKind::Forward, task.stage, task.microbatch});
  }
  return list;
}

std::map<Task, Place> places_of(const Schedule& schedule) {
  std::map<Task, Place> places;
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    for (std::size_t c = 0; c < schedule.rows()[r].size(); ++c) {
      for (const Task& task : schedule.rows()[r][c].tasks()) {
        places[task] = {r, c};
      }
    }
  }
  return places;
}

/// Returns the tasks that are too late for another, each with its rule.
std::set<std::tuple<std::string, Task>> late_tasks(const Schedule& schedule) {
  const auto places = places_of(schedule);
  std::set<std::tuple<std::string, Task>> late;
  for (const auto& [task, place] : places) {
    for (const Task& need : needs(schedule, places, task)) {
      if (places.at(need).second >= place.second) {
        late.emplace(task.kind == CellKind::Forward          ? "V20"
                     : task.kind == CellKind::BackwardWeight ? "V23"
                     : need.kind == CellKind::Forward        ? "V21"
                                                             : "V22",
                     task);
      }
    }
  }
  return late;
}

TEST_CASE("an array breaks V20 to V23 exactly where a task comes too late",
          "[scheduler][validate][property]") {
  RandomSchedule random(1);
  int valid = 0;
  int broken = 0;
  for (int round = 0; round < 3000; ++round) {
    const Schedule schedule = random.make();
    std::set<std::tuple<std::string, Task>> found;
    for (const Violation& v : validate(schedule, schedule.stage_graph())) {
      if (v.rule >= "V20" && v.rule <= "V23") {
        found.emplace(v.rule, v.task.value());
        for (const Violation::SameCause& alike : v.more) {
          REQUIRE(found.emplace(v.rule, alike.task.value()).second);
        }
      } else {
        REQUIRE(v.rule == "V28");
      }
    }
    CAPTURE(to_string(schedule));
    REQUIRE((found == late_tasks(schedule)));
    (found.empty() ? valid : broken) += 1;
  }
  CHECK(valid > 100);
  CHECK(broken > 100);
}

TEST_CASE("a list breaks V29 exactly when it cannot run, and its cycle is one",
          "[scheduler][validate][property]") {
  RandomSchedule random(2);
  int running = 0;
  int stuck = 0;
  for (int round = 0; round < 3000; ++round) {
    const Schedule list = random.make().to_list();
    const auto violations = validate(list, list.stage_graph());
    const auto found = std::ranges::find(violations, "V29", &Violation::rule);
    bool runs = true;
    try {
      (void)simulate(list, list.stage_graph());
    } catch (const Error&) {
      runs = false;
    }
    CAPTURE(to_string(list));
    REQUIRE((found == violations.end()) == runs);
    (runs ? running : stuck) += 1;
    if (runs) {
      continue;
    }
    const auto places = places_of(list);
    for (std::size_t i = 0; i < found->cells.size(); ++i) {
      const auto& [row, column] = found->cells[i];
      const auto& [next_row, next_column] = found->cells[(i + 1) % found->cells.size()];
      bool linked = row == next_row && next_column > column;
      const Cell& next =
          list.rows()[static_cast<std::size_t>(next_row)][static_cast<std::size_t>(next_column)];
      for (const Task& task : next.tasks()) {
        for (const Task& need : needs(list, places, task)) {
          linked |= places.at(need) ==
                    Place(static_cast<std::size_t>(row), static_cast<std::size_t>(column));
        }
      }
      REQUIRE(linked);
    }
    if (found->repair) {
      const auto left = validate(apply(list, *found->repair), list.stage_graph());
      REQUIRE(std::ranges::find(left, "V29", &Violation::rule) == left.end());
    }
  }
  CHECK(running > 100);
  CHECK(stuck > 100);
}

TEST_CASE("where an array gets no exchange none would help",
          "[scheduler][validate][property][repair]") {
  RandomSchedule random(3);
  int repaired = 0;
  int hopeless = 0;
  for (int round = 0; round < 400; ++round) {
    const Schedule schedule = random.make();
    const auto found = validate(schedule, schedule.stage_graph());
    if (late_tasks(schedule).empty()) {
      continue;
    }
    const bool proposed =
        std::ranges::any_of(found, [](const Violation& v) { return v.repair.has_value(); });
    bool possible = false;
    for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
      for (int i = 0; i < static_cast<int>(schedule.columns()); ++i) {
        for (int j = i + 1; j < static_cast<int>(schedule.columns()); ++j) {
          possible |= late_tasks(apply(schedule, {static_cast<int>(r), i, j})).empty();
        }
      }
    }
    CAPTURE(to_string(schedule));
    REQUIRE(proposed == possible);
    (proposed ? repaired : hopeless) += 1;
  }
  CHECK(repaired > 20);
  CHECK(hopeless > 20);
}

}  // namespace
}  // namespace stagecraft
