#include "stagecraft/tests/scheduler/rules/random_schedule.h"

#include <algorithm>

namespace stagecraft::test {

Schedule RandomSchedule::make() {
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

void RandomSchedule::mix(Schedule::Row& row) {
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

}  // namespace stagecraft::test
