#include "stagecraft/scheduler/measured/measured_waits.h"

#include <algorithm>

namespace stagecraft {
namespace {

void add_wait_of(double start, double end, WaitCause cause, std::vector<MeasuredWait>& waits) {
  if (end != start) {
    waits.push_back({{start, end}, cause});
  }
}

/// Divides the wait before a task by its cause: the input that came last decides.
void add_waits_before(const MeasuredTask& task, double free, std::vector<MeasuredWait>& waits) {
  const double start = task.time.start;
  double made = free;
  double there = free;
  for (const MeasuredInput& input : task.inputs) {
    if (input.arrived > there) {
      there = input.arrived;
      made = input.from_row ? input.made : free;
    }
  }
  there = std::clamp(there, free, start);
  made = std::clamp(made, free, there);
  add_wait_of(free, made, WaitCause::Dependency, waits);
  add_wait_of(made, there, WaitCause::Transfer, waits);
  add_wait_of(there, start, WaitCause::Overhead, waits);
}

}  // namespace

std::string_view to_string(WaitCause cause) {
  switch (cause) {
    case WaitCause::WarmUp:
      return "warm_up";
    case WaitCause::Dependency:
      return "dependency";
    case WaitCause::Transfer:
      return "communication";
    case WaitCause::Overhead:
      return "overhead";
    case WaitCause::Drain:
      return "drain";
  }
  return "";
}

TimeSpan tasks_span(const MeasuredStep& step) {
  TimeSpan span = step.time;
  bool first = true;
  for (const MeasuredRow& row : step.rows) {
    if (row.tasks.empty()) {
      continue;
    }
    const double start = row.tasks.front().time.start;
    const double end = row.tasks.back().time.end;
    span = first ? TimeSpan{start, end}
                 : TimeSpan{std::min(span.start, start), std::max(span.end, end)};
    first = false;
  }
  return span;
}

std::vector<MeasuredWait> waits_of(const MeasuredRow& row, const TimeSpan& span) {
  std::vector<MeasuredWait> waits;
  if (row.tasks.empty()) {
    add_wait_of(span.start, span.end, WaitCause::WarmUp, waits);
    return waits;
  }
  add_wait_of(span.start, row.tasks.front().time.start, WaitCause::WarmUp, waits);
  for (std::size_t i = 1; i < row.tasks.size(); ++i) {
    add_waits_before(row.tasks[i], row.tasks[i - 1].time.end, waits);
  }
  add_wait_of(row.tasks.back().time.end, span.end, WaitCause::Drain, waits);
  return waits;
}

}  // namespace stagecraft
