#include "stagecraft/scheduler/simulate.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/task_graph.h"

namespace stagecraft {
namespace {

constexpr int kNothing = -1;

/// The state of one run: end times by entry, and which entry each one waited for last.
class Simulation {
 public:
  Simulation(const TaskGraph& tasks, const CostModel& costs)
      : tasks_(tasks),
        costs_(costs),
        times_(tasks.entries().size()),
        cause_(tasks.entries().size(), kNothing) {}

  void run_entry(int number);
  [[nodiscard]] Timeline timeline() const;

 private:
  [[nodiscard]] double arrival(const Task& task, const Task& prerequisite, int from, int to) const;
  [[nodiscard]] std::vector<Task> critical_path() const;
  [[nodiscard]] Task critical_task(int number, int after) const;
  [[nodiscard]] RowTimeline row_timeline(int row, double makespan) const;

  const TaskGraph& tasks_;
  const CostModel& costs_;
  std::vector<EntryTime> times_;
  std::vector<int> cause_;
};

double Simulation::arrival(const Task& task, const Task& prerequisite, int from, int to) const {
  const double end = times_[static_cast<std::size_t>(from)].end;
  if (tasks_.entry(from).row == tasks_.entry(to).row) {
    return end;
  }
  const bool gradient = prerequisite.kind != CellKind::Forward;
  return end + (gradient ? costs_.transfer_between(task.stage, prerequisite.stage)
                         : costs_.transfer_between(prerequisite.stage, task.stage));
}

void Simulation::run_entry(int number) {
  const Entry& entry = tasks_.entry(number);
  EntryTime time;
  time.cell = entry.cell;
  int cause = kNothing;
  if (number > tasks_.row_begin(entry.row)) {
    cause = number - 1;
    time.start = times_[static_cast<std::size_t>(cause)].end;
  }
  const double free = time.start;
  for (const Task& task : entry.cell->tasks()) {
    if (!tasks_.in_range(task)) {
      throw Error(
          Errc::ScheduleInvalid,
          fmt::format(
              "{} names a stage or microbatch that does not exist; run validate() for all faults",
              to_string(task)));
    }
    tasks_.for_each_prerequisite(task, [&](const Task& prerequisite) {
      const int holder = tasks_.find(prerequisite);
      if (holder == TaskGraph::kMissing) {
        throw Error(
            Errc::ScheduleInvalid,
            fmt::format("{} waits for {}, which the schedule lacks; run validate() for all faults",
                        to_string(task),
                        to_string(prerequisite)));
      }
      const double ready = arrival(task, prerequisite, holder, number);
      if (ready > time.start) {
        time.start = ready;
        time.waited_for = prerequisite;
        cause = holder;
      }
    });
  }
  if (time.waited_for) {
    time.in_transfer = time.start - std::max(free, times_[static_cast<std::size_t>(cause)].end);
  }
  time.end = time.start + costs_.duration(*entry.cell);
  times_[static_cast<std::size_t>(number)] = time;
  cause_[static_cast<std::size_t>(number)] = cause;
}

/// Of a group the member that the next task on the path waited for, else the first.
Task Simulation::critical_task(int number, int after) const {
  const auto members = tasks_.entry(number).cell->tasks();
  Task chosen = members.front();
  if (after != kNothing) {
    for (const Task& task : tasks_.entry(after).cell->tasks()) {
      tasks_.for_each_prerequisite(task, [&](const Task& prerequisite) {
        if (std::ranges::find(members, prerequisite) != members.end()) {
          chosen = prerequisite;
        }
      });
    }
  }
  return chosen;
}

std::vector<Task> Simulation::critical_path() const {
  if (times_.empty()) {
    return {};
  }
  const auto last = std::ranges::max_element(times_, {}, &EntryTime::end);
  std::vector<Task> path;
  int after = kNothing;
  for (int at = static_cast<int>(last - times_.begin()); at != kNothing;
       at = cause_[static_cast<std::size_t>(at)]) {
    path.push_back(critical_task(at, after));
    after = at;
  }
  std::ranges::reverse(path);
  return path;
}

Bubbles bubbles_of(const std::vector<EntryTime>& entries, double makespan) {
  Bubbles bubbles;
  if (entries.empty()) {
    bubbles.warm_up = makespan;
    return bubbles;
  }
  bubbles.warm_up = entries.front().start;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    bubbles.transfer += entries[i].in_transfer;
    bubbles.dependency += entries[i].start - entries[i - 1].end - entries[i].in_transfer;
  }
  bubbles.drain = makespan - entries.back().end;
  return bubbles;
}

RowTimeline Simulation::row_timeline(int row, double makespan) const {
  RowTimeline out;
  out.entries.assign(times_.begin() + tasks_.row_begin(row), times_.begin() + tasks_.row_end(row));
  for (const EntryTime& time : out.entries) {
    out.busy += time.end - time.start;
  }
  out.idle = makespan - out.busy;
  out.bubbles = bubbles_of(out.entries, makespan);
  if (!out.entries.empty()) {
    out.span_idle = out.entries.back().end - out.entries.front().start - out.busy;
  }
  return out;
}

Timeline Simulation::timeline() const {
  Timeline out;
  for (const EntryTime& time : times_) {
    out.makespan = std::max(out.makespan, time.end);
  }
  for (int row = 0; row < tasks_.rows(); ++row) {
    out.rows.push_back(row_timeline(row, out.makespan));
  }
  out.critical_path = critical_path();
  return out;
}

}  // namespace

int peak_in_flight(const Schedule::Row& row, const StageGraph& graph) {
  int now = 0;
  int peak = 0;
  for (const Cell& cell : row) {
    int released = 0;
    for (const Task& task : cell.tasks()) {
      if (!graph.has_backward(task.stage)) {
        continue;
      }
      now += task.kind == CellKind::Forward ? 1 : 0;
      released += task.kind == CellKind::Backward || task.kind == CellKind::BackwardWeight ? 1 : 0;
    }
    peak = std::max(peak, now);
    now -= released;
  }
  return peak;
}

Timeline simulate(const Schedule& schedule, const StageGraph& graph, const CostModel& costs) {
  const TaskGraph tasks(schedule.rows(), graph, schedule.microbatches());
  Simulation simulation(tasks, costs);
  const std::size_t ran = tasks.walk([&](int number) { simulation.run_entry(number); });
  if (ran != tasks.entries().size()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("{} of {} cells wait for each other for ever; run validate() on the "
                            "list form for a cycle",
                            tasks.entries().size() - ran,
                            tasks.entries().size()));
  }
  Timeline timeline = simulation.timeline();
  for (std::size_t row = 0; row < timeline.rows.size(); ++row) {
    timeline.rows[row].peak_in_flight = peak_in_flight(schedule.rows()[row], graph);
  }
  return timeline;
}

}  // namespace stagecraft
