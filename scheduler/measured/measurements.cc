#include "stagecraft/scheduler/measured/measurements.h"

#include <algorithm>

#include "stagecraft/scheduler/measured/measured_waits.h"

namespace stagecraft {
namespace {

Bill measured_bill(const MeasuredRow& row, const TimeSpan& span) {
  Bill bill;
  for (const MeasuredTask& task : row.tasks) {
    bill.busy += task.time.length();
  }
  for (const MeasuredWait& wait : waits_of(row, span)) {
    switch (wait.cause) {
      case WaitCause::WarmUp:
        bill.bubbles.warm_up += wait.time.length();
        break;
      case WaitCause::Dependency:
        bill.bubbles.dependency += wait.time.length();
        break;
      case WaitCause::Transfer:
        bill.bubbles.transfer += wait.time.length();
        break;
      case WaitCause::Overhead:
        bill.overhead += wait.time.length();
        break;
      case WaitCause::Drain:
        bill.bubbles.drain += wait.time.length();
        break;
    }
  }
  return bill;
}

double seconds_after(const std::vector<TimeSpan>& spans, double time) {
  double seconds = 0;
  for (const TimeSpan& span : spans) {
    seconds += std::max(0.0, span.end - std::max(span.start, time));
  }
  return seconds;
}

Surroundings measured_surroundings(const MeasuredStep& step,
                                   const MeasuredRow& row,
                                   const TimeSpan& span) {
  Surroundings out;
  out.start = span.start - step.time.start;
  out.vote = seconds_after(row.votes, span.end);
  out.update = seconds_after(row.updates, span.end);
  out.other = step.time.end - span.end - out.vote - out.update;
  return out;
}

void add_to(Bill& sum, const Bill& more) {
  sum.busy += more.busy;
  sum.overhead += more.overhead;
  sum.bubbles += more.bubbles;
}

void add_to(Surroundings& sum, const Surroundings& more) {
  sum.start += more.start;
  sum.vote += more.vote;
  sum.update += more.update;
  sum.other += more.other;
}

}  // namespace

void Measurements::add(const MeasuredStep& step) {
  if (added_ == 1) {
    *this = {};  // keeps MM-2
    added_ = 1;
  }
  ++added_;
  ++steps_;
  rows_.resize(std::max(rows_.size(), step.rows.size()));
  const TimeSpan span = tasks_span(step);
  makespan_ += span.length();
  for (std::size_t r = 0; r < step.rows.size(); ++r) {
    const MeasuredRow& row = step.rows[r];
    add_to(rows_[r].bill, measured_bill(row, span));
    add_to(rows_[r].surroundings, measured_surroundings(step, row, span));
    for (const MeasuredTask& task : row.tasks) {
      TimeSpan& sum = rows_[r].tasks[task.task];
      sum.start += task.time.start - span.start;
      sum.end += task.time.end - span.start;
      durations_[{task.task.stage, task.task.kind}].add(task.time.length());
    }
    add_transfers(row, static_cast<int>(r));
  }
}

void Measurements::add_transfers(const MeasuredRow& row, int number) {
  for (const MeasuredTask& task : row.tasks) {
    for (const MeasuredInput& input : task.inputs) {
      if (input.from_row) {
        links_[{*input.from_row, number}].add(std::max(0.0, input.arrived - input.made));
      }
    }
  }
}

Bill Measurements::bill(std::size_t row) const {
  const Bill& sum = rows_[row].bill;
  return {.busy = sum.busy / steps_,
          .bubbles = {.warm_up = sum.bubbles.warm_up / steps_,
                      .dependency = sum.bubbles.dependency / steps_,
                      .transfer = sum.bubbles.transfer / steps_,
                      .drain = sum.bubbles.drain / steps_},
          .overhead = sum.overhead / steps_};
}

Surroundings Measurements::surroundings(std::size_t row) const {
  const Surroundings& sum = rows_[row].surroundings;
  return {.start = sum.start / steps_,
          .vote = sum.vote / steps_,
          .update = sum.update / steps_,
          .other = sum.other / steps_};
}

std::map<Task, TimeSpan> Measurements::tasks(std::size_t row) const {
  std::map<Task, TimeSpan> means;
  for (const auto& [task, sum] : rows_[row].tasks) {
    means[task] = {sum.start / steps_, sum.end / steps_};
  }
  return means;
}

Costs Measurements::costs() const {
  Costs costs;
  const auto mean = [this](std::size_t stage, CellKind kind) {
    const auto found = durations_.find({StageId(stage), kind});
    return found == durations_.end() ? 0.0 : found->second.value();
  };
  std::size_t stages = 0;
  for (const auto& [key, duration] : durations_) {
    stages = std::max(stages, key.first.index() + 1);
  }
  for (std::size_t s = 0; s < stages; ++s) {
    costs.stages.each.push_back({.forward = mean(s, CellKind::Forward),
                                 .backward = mean(s, CellKind::Backward),
                                 .backward_input = mean(s, CellKind::BackwardInput),
                                 .backward_weight = mean(s, CellKind::BackwardWeight),
                                 .update = mean(s, CellKind::Update)});
  }
  for (const auto& [rows, latency] : links_) {
    costs.links.each[rows].latency = latency.value();
  }
  return costs;
}

Bill bill_of(const RowTimeline& row) {
  return {.busy = row.busy, .bubbles = row.bubbles, .overhead = 0};
}

}  // namespace stagecraft
