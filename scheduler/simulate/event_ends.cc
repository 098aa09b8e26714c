#include "stagecraft/scheduler/simulate/event_ends.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

EventEnds::EventEnds(const TaskGraph& tasks,
                     const LinkCosts& links,
                     std::span<const EventOrder> orders)
    : tasks_(tasks), links_(links), ends_(tasks.entries().size(), -1.0) {
  for (const EventOrder& order : orders) {
    befores_[order.after].push_back(order.before);
    for (const StepEvent& event : {order.before, order.after}) {
      if (event.is_transfer()) {
        receivers_[event] = kNothing;
      }
    }
  }
  find_receivers();
  for (const EventOrder& order : orders) {
    require(order.before, order);
    require(order.after, order);
  }
  refuse_circles();
}

/// Checks transfers only: the run finds a circle that contains a task.
void EventEnds::refuse_circles() const {
  std::map<StepEvent, int> unmet;
  std::map<StepEvent, std::vector<StepEvent>> afters;
  for (const auto& [event, befores] : befores_) {
    for (const StepEvent& before : befores) {
      if (event.is_transfer() && before.is_transfer()) {
        ++unmet[event];
        afters[before].push_back(event);
      }
    }
  }
  std::vector<StepEvent> free;
  for (const auto& [event, row] : receivers_) {
    if (!unmet.contains(event)) {
      free.push_back(event);
    }
  }
  for (std::size_t at = 0; at < free.size(); ++at) {
    const StepEvent event = free[at];
    for (const StepEvent& after : afters[event]) {
      if (--unmet[after] == 0) {
        free.push_back(after);
      }
    }
  }
  if (free.size() < receivers_.size()) {
    throw Error(Errc::ScheduleInvalid,
                "the given orders make transfers wait for each other; leave out an order");
  }
}

void EventEnds::find_receivers() {
  if (receivers_.empty()) {
    return;
  }
  for (const Entry& entry : tasks_.entries()) {
    for (const Task& task : entry.cell->tasks()) {
      if (!tasks_.in_range(task)) {
        continue;
      }
      tasks_.for_each_prerequisite(task, [&](const Task& made) {
        const int holder = tasks_.find(made);
        const auto named = receivers_.find({made, task.stage});
        if (named != receivers_.end() && holder != kNothing &&
            tasks_.entry(holder).row != entry.row) {
          named->second = entry.row;
        }
      });
    }
  }
}

void EventEnds::require(const StepEvent& event, const EventOrder& order) const {
  const bool exists = event.is_transfer()
                          ? receivers_.at(event) != kNothing
                          : tasks_.in_range(event.task) && tasks_.find(event.task) != kNothing;
  if (!exists) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("the order {} names {}, which this schedule does not have; give tasks, "
                            "and transfers between rows, that it has",
                            to_string(order),
                            to_string(event)));
  }
}

int EventEnds::awaited_by(const StepEvent& event) const {
  const auto found = befores_.find(event);
  if (found == befores_.end() || arrived_.contains(event)) {
    return kNothing;
  }
  for (const StepEvent& before : found->second) {
    const int entry = tasks_.find(before.task);
    if (!has_ended(entry)) {
      return entry;
    }
    const int further = before.is_transfer() ? awaited_by(before) : kNothing;
    if (further != kNothing) {
      return further;
    }
  }
  return kNothing;
}

int EventEnds::awaited(const Task& task) const {
  int entry = awaited_by({task});
  tasks_.for_each_prerequisite(task, [&](const Task& made) {
    entry = entry == kNothing ? awaited_by({made, task.stage}) : entry;
  });
  return entry;
}

EventEnds::End EventEnds::last_before(const StepEvent& event) {
  End last;
  const auto found = befores_.find(event);
  if (found == befores_.end()) {
    return last;
  }
  for (const StepEvent& before : found->second) {
    if (const End end = end_of(before); end.time > last.time) {
      last = {end.time, end.entry, before};
    }
  }
  return last;
}

EventEnds::End EventEnds::end_of(const StepEvent& event) {
  const int maker = tasks_.find(event.task);
  End end{ends_[static_cast<std::size_t>(maker)], maker, event};
  if (!event.is_transfer()) {
    return end;
  }
  if (const auto known = arrived_.find(event); known != arrived_.end()) {
    return known->second;
  }
  if (const End other = last_before(event); other.time > end.time) {
    end.time = other.time;
    end.entry = other.entry;
  }
  const int made_by = event.task.stage.value;
  const int receiver = event.receiver.value;
  const LinkCosts::Pair edge = event.task.kind == CellKind::Forward ? std::pair(made_by, receiver)
                                                                    : std::pair(receiver, made_by);
  end.time += links_.transfer(edge, tasks_.entry(maker).row, receivers_.at(event));
  arrived_.emplace(event, end);
  return end;
}

}  // namespace stagecraft
