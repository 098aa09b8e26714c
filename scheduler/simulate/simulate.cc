#include "stagecraft/scheduler/simulate/simulate.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/costs/row_devices.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/scheduler/simulate/event_ends.h"

namespace stagecraft {
namespace {

constexpr int kNothing = -1;

/// The state of one run: end times by entry, and the last entry that each one waited for.
class Simulation {
 public:
  Simulation(const TaskGraph& tasks,
             const Costs& costs,
             std::span<const RowShare> shares,
             std::span<const double> speeds,
             std::span<const EventOrder> orders)
      : tasks_(tasks),
        costs_(costs),
        shares_(shares),
        speeds_(speeds),
        ends_(tasks, costs.links, orders),
        times_(tasks.entries().size()),
        cause_(tasks.entries().size(), kNothing) {}

  /// Requires: everything that the entry waits for has ended.
  void run_entry(int number);
  /// Runs all entries that can run, each row on its own processors. Returns how many ran.
  [[nodiscard]] std::size_t run_apart();
  /// Does the same on shared processors.
  [[nodiscard]] std::size_t run_shared();
  [[nodiscard]] Timeline timeline() const;

 private:
  [[nodiscard]] const RowShare& share(int row) const {
    return shares_[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] bool can_run(int number) const;
  [[nodiscard]] int awaited(int number) const;
  [[nodiscard]] EventEnds::End arrival(const Task& task, const Task& prerequisite, int to);
  [[nodiscard]] std::vector<Task> critical_path() const;
  [[nodiscard]] Task critical_task(int number, int after) const;
  [[nodiscard]] RowTimeline row_timeline(int row, double makespan) const;

  const TaskGraph& tasks_;
  const Costs& costs_;
  std::span<const RowShare> shares_;
  std::span<const double> speeds_;  // by row
  EventEnds ends_;
  std::vector<EntryTime> times_;
  std::vector<int> cause_;
};

/// Returns when the result of the prerequisite has reached the task of entry `to`.
EventEnds::End Simulation::arrival(const Task& task, const Task& prerequisite, int to) {
  if (ends_.is_ordered({prerequisite, task.stage})) {
    return ends_.end_of({prerequisite, task.stage});
  }
  const int from = tasks_.find(prerequisite);
  const bool gradient = prerequisite.kind != CellKind::Forward;
  const int producer = (gradient ? task : prerequisite).stage.value;
  const int consumer = (gradient ? prerequisite : task).stage.value;
  const double transfer =
      costs_.links.transfer({producer, consumer}, tasks_.entry(from).row, tasks_.entry(to).row);
  return {times_[static_cast<std::size_t>(from)].end + transfer, from, {prerequisite}};
}

/// Returns an entry that this one waits for by an order; kNothing if all of those have ended.
int Simulation::awaited(int number) const {
  if (ends_.empty()) {
    return kNothing;
  }
  for (const Task& task : tasks_.entry(number).cell->tasks()) {
    const int entry = tasks_.in_range(task) ? ends_.awaited(task) : kNothing;
    if (entry != kNothing) {
      return entry;
    }
  }
  return kNothing;
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
  const auto wait_for = [&](const EventEnds::End& end) {
    if (end.time > time.start) {
      time.start = end.time;
      time.waited_for = end.event.task;
      cause = end.entry;
    }
  };
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
      wait_for(arrival(task, prerequisite, number));
    });
    wait_for(ends_.last_before({task}));
  }
  if (time.waited_for) {
    time.in_transfer = time.start - std::max(free, times_[static_cast<std::size_t>(cause)].end);
  }
  time.end = time.start + share(entry.row).units *
                              costs_.stages.duration(*entry.cell, tasks_.stages()) /
                              speeds_[static_cast<std::size_t>(entry.row)];
  times_[static_cast<std::size_t>(number)] = time;
  cause_[static_cast<std::size_t>(number)] = cause;
}

std::size_t Simulation::run_apart() {
  return tasks_.walk(
      [&](int number) {
        run_entry(number);
        ends_.set_end(number, times_[static_cast<std::size_t>(number)].end);
      },
      [&](int number) { return awaited(number); });
}

bool Simulation::can_run(int number) const {
  bool can = awaited(number) == kNothing;
  for (const Task& task : tasks_.entry(number).cell->tasks()) {
    if (tasks_.in_range(task)) {
      tasks_.for_each_prerequisite(task, [&](const Task& prerequisite) {
        const int holder = tasks_.find(prerequisite);
        can = can && (holder == TaskGraph::kMissing || ends_.has_ended(holder));
      });
    }
  }
  return can;
}

std::size_t Simulation::run_shared() {
  struct Row {
    int next = 0;
    bool placed = false;  // the start of the next entry is known
    bool running = false;
    double left = 0;  // remaining work
  };
  std::vector<Row> rows;
  for (int row = 0; row < tasks_.rows(); ++row) {
    rows.push_back({.next = tasks_.row_begin(row)});
  }
  std::size_t ran = 0;
  double now = 0;
  const double threads = std::max(1, costs_.device.threads);
  while (true) {
    int running = 0;
    double next_start = std::numeric_limits<double>::infinity();
    for (int r = 0; r < tasks_.rows(); ++r) {
      Row& row = rows[static_cast<std::size_t>(r)];
      if (!row.placed && row.next < tasks_.row_end(r) && can_run(row.next)) {
        run_entry(row.next);
        row.placed = true;
      }
      if (row.placed && !row.running) {
        EntryTime& time = times_[static_cast<std::size_t>(row.next)];
        if (time.start <= now) {
          row.running = true;
          row.left = time.end - time.start;
        } else {
          next_start = std::min(next_start, time.start);
        }
      }
      running += row.running ? share(r).ranks : 0;
    }
    const double speed =
        running == 0 ? 1 : std::min(1.0, costs_.device.processors / (threads * running));
    double next = next_start;
    for (const Row& row : rows) {
      if (row.running) {
        next = std::min(next, now + row.left / speed);
      }
    }
    if (next == std::numeric_limits<double>::infinity()) {
      return ran;
    }
    for (Row& row : rows) {
      if (!row.running) {
        continue;
      }
      const bool ends = now + row.left / speed <= next;
      row.left -= (next - now) * speed;
      if (ends) {
        times_[static_cast<std::size_t>(row.next)].end = next;
        ends_.set_end(row.next, next);
        ++row.next;
        ++ran;
        row.placed = row.running = false;
      }
    }
    now = next;
  }
}

/// Returns the member of a group that the next task on the path waited for, else the first.
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

/// Calls `visit` with every bubble of a row, in order of time.
template <class Visit>
void for_each_bubble(int row,
                     const std::vector<EntryTime>& entries,
                     double makespan,
                     Visit&& visit) {
  double free = 0;
  const auto add = [&](double end, BubbleCause cause, const EntryTime* next) {
    if (end > free) {
      visit(Bubble{row, free, end, cause, next});
      free = end;
    }
  };
  for (const EntryTime& entry : entries) {
    if (&entry == &entries.front()) {
      add(entry.start, BubbleCause::WarmUp, &entry);
    } else {
      add(entry.start - entry.in_transfer, BubbleCause::Dependency, &entry);
      add(entry.start, BubbleCause::Transfer, &entry);
    }
    free = entry.end;
  }
  add(makespan, entries.empty() ? BubbleCause::WarmUp : BubbleCause::Drain, nullptr);
}

Bubbles bubbles_of(const std::vector<EntryTime>& entries, double makespan) {
  Bubbles sums;
  for_each_bubble(0, entries, makespan, [&](const Bubble& bubble) {
    switch (bubble.cause) {
      case BubbleCause::WarmUp:
        sums.warm_up += bubble.length();
        break;
      case BubbleCause::Dependency:
        sums.dependency += bubble.length();
        break;
      case BubbleCause::Transfer:
        sums.transfer += bubble.length();
        break;
      case BubbleCause::Drain:
        sums.drain += bubble.length();
        break;
    }
  });
  return sums;
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
      now += task.kind == CellKind::Forward && graph.has_backward(task.stage) ? 1 : 0;
      released += graph.ends_backward(task) ? 1 : 0;
    }
    peak = std::max(peak, now);
    now -= released;
  }
  return peak;
}

namespace {

void add_memory(const Schedule& schedule,
                const StageGraph& graph,
                const MemoryModel& memory,
                std::span<const RowShare> shares,
                Timeline& timeline) {
  const Placement placement = Placement::of(schedule, graph.size());
  for (std::size_t r = 0; r < timeline.rows.size(); ++r) {
    RowTimeline& row = timeline.rows[r];
    row.peak_in_flight = peak_in_flight(schedule.rows()[r], graph);
    RowMemory held(memory, graph, shares[r].units);
    for (const StageId stage : placement.stages(static_cast<int>(r))) {
      held.hold_fixed(stage);
    }
    for (EntryTime& entry : row.entries) {
      entry.bytes = held.run(entry.cell->tasks());
      entry.bytes_after = held.held();
      row.peak_bytes = std::max(row.peak_bytes, entry.bytes);
    }
  }
}

}  // namespace

double Timeline::bubble_fraction() const {
  double idle = 0;
  for (const RowTimeline& row : rows) {
    idle += row.idle;
  }
  const double whole = makespan * static_cast<double>(rows.size());
  return whole > 0 ? idle / whole : 0;
}

Timeline simulate(const Schedule& schedule,
                  const StageGraph& graph,
                  const Costs& costs,
                  std::span<const EventOrder> orders) {
  const TaskGraph tasks(schedule.rows(), graph, schedule.microbatches());
  // In a drawing every cell is one column, whatever its row stands for.
  const std::size_t rows = schedule.rows().size();
  const bool columns = costs.stages.columns;
  const std::vector<RowShare> shares = columns ? std::vector<RowShare>(rows) : row_shares(schedule);
  const std::vector<double> speeds =
      columns ? std::vector<double>(rows, 1) : speeds_of_rows(costs.devices, schedule);
  Simulation simulation(tasks, costs, shares, speeds, orders);
  const CostDevice& device = costs.device;
  int ranks = 0;
  for (const RowShare& share : shares) {
    ranks += share.ranks;
  }
  const bool shared =
      device.processors > 0 && ranks * std::max(1, device.threads) > device.processors;
  const std::size_t ran = shared ? simulation.run_shared() : simulation.run_apart();
  if (ran != tasks.entries().size()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("{} of {} cells wait for each other forever; {}",
                            tasks.entries().size() - ran,
                            tasks.entries().size(),
                            orders.empty() ? "run validate() on the list form to see a cycle"
                                           : "leave out an order that makes them wait"));
  }
  Timeline timeline = simulation.timeline();
  add_memory(schedule, graph, costs.stages.memory, shares, timeline);
  return timeline;
}

std::string_view name(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::WarmUp:
      return "warm-up";
    case BubbleCause::Dependency:
      return "dependency";
    case BubbleCause::Transfer:
      return "transfer";
    case BubbleCause::Drain:
      break;
  }
  return "drain";
}

std::vector<Bubble> list_bubbles(const Timeline& timeline) {
  std::vector<Bubble> all;
  for (std::size_t r = 0; r < timeline.rows.size(); ++r) {
    for_each_bubble(static_cast<int>(r),
                    timeline.rows[r].entries,
                    timeline.makespan,
                    [&](const Bubble& bubble) { all.push_back(bubble); });
  }
  return all;
}

}  // namespace stagecraft
