#include "stagecraft/scheduler/planners/request/early_values.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/task_graph.h"

namespace stagecraft {
namespace {

/// A change of the bytes that wait at a row.
struct WaitingChange {
  double time = 0;
  double bytes = 0;
  bool received = false;  ///< from another row
};

double bytes_between(const LinkCosts& links, const Task& task, const Task& prerequisite) {
  const bool gradient = prerequisite.kind != CellKind::Forward;
  const int producer = (gradient ? task : prerequisite).stage.value;
  const int consumer = (gradient ? prerequisite : task).stage.value;
  const auto found = links.edge_bytes.find({producer, consumer});
  return found == links.edge_bytes.end() ? links.bytes : found->second;
}

/// Returns the changes for one row, in order of time.
std::vector<WaitingChange> changes_of(const TaskGraph& tasks,
                                      const std::vector<const EntryTime*>& times,
                                      const LinkCosts& links,
                                      int row,
                                      int units) {
  std::vector<WaitingChange> changes;
  for (int e = tasks.row_begin(row); e < tasks.row_end(row); ++e) {
    const double taken = times[static_cast<std::size_t>(e)]->start;
    for (const Task& task : tasks.entry(e).cell->tasks()) {
      tasks.for_each_prerequisite(task, [&](const Task& prerequisite) {
        const int from = tasks.find(prerequisite);
        if (from == TaskGraph::kMissing || task.kind == CellKind::Update) {
          return;
        }
        const bool stays = tasks.entry(from).row == row;
        const bool is_gradient =
            prerequisite.kind != CellKind::Forward && prerequisite.stage != task.stage;
        if (stays && !is_gradient) {
          return;
        }
        const double sent = times[static_cast<std::size_t>(from)]->end;
        const double bytes = units * bytes_between(links, task, prerequisite);
        changes.push_back({.time = sent, .bytes = bytes, .received = !stays});
        changes.push_back({.time = taken, .bytes = -bytes, .received = !stays});
      });
    }
  }
  std::ranges::sort(changes, {}, [](const WaitingChange& c) { return std::pair(c.time, c.bytes); });
  return changes;
}

double peak_of_row(const RowTimeline& row, const std::vector<WaitingChange>& changes) {
  double most = row.peak_bytes;
  double waiting = 0;
  auto next = changes.begin();
  const auto pass = [&](double end, double held) {
    most = std::max(most, held + waiting);
    for (; next != changes.end() && next->time < end; ++next) {
      waiting += next->bytes;
      most = std::max(most, held + waiting);
    }
  };
  const auto begin_at = [&](double time) {
    for (; next != changes.end() && next->time <= time; ++next) {
      waiting += next->bytes;
    }
  };
  for (std::size_t e = 0; e < row.entries.size(); ++e) {
    const EntryTime& entry = row.entries[e];
    begin_at(entry.start);
    pass(entry.end, entry.bytes);
    if (e + 1 < row.entries.size()) {
      begin_at(entry.end);
      pass(row.entries[e + 1].start, entry.bytes_after);
    }
  }
  return most;
}

}  // namespace

std::vector<RowPeak> peaks_with_early_values(const Timeline& timeline,
                                             const Schedule& schedule,
                                             const StageGraph& graph,
                                             const LinkCosts& links) {
  const TaskGraph tasks(schedule.rows(), graph, schedule.microbatches());
  std::vector<const EntryTime*> times;
  for (const RowTimeline& row : timeline.rows) {
    for (const EntryTime& entry : row.entries) {
      times.push_back(&entry);
    }
  }
  const std::vector<RowShare> shares = row_shares(schedule);
  std::vector<RowPeak> peaks;
  for (std::size_t r = 0; r < timeline.rows.size(); ++r) {
    std::vector<WaitingChange> changes =
        changes_of(tasks, times, links, static_cast<int>(r), shares[r].units);
    const double all = peak_of_row(timeline.rows[r], changes);
    std::erase_if(changes, [](const WaitingChange& c) { return c.received; });
    peaks.push_back({.own = peak_of_row(timeline.rows[r], changes), .all = all});
  }
  return peaks;
}

}  // namespace stagecraft
