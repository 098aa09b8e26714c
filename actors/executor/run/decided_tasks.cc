#include "stagecraft/actors/executor/run/decided_tasks.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

bool is_of_task(Op op) {
  return op == Op::Run || op == Op::Accumulate || op == Op::Regroup || is_transfer(op);
}

template <class Visit>
void for_each_use(const Instruction& instruction, Visit&& visit) {
  for (const auto* uses : {&instruction.reads, &instruction.writes}) {
    for (const SlotUse& use : *uses) {
      visit(use.slot);
    }
  }
}

}  // namespace

DecidedTasks::DecidedTasks(const std::vector<Instruction>& list)
    : list_(&list), is_taken_(list.size(), false) {
  std::map<Task, std::vector<std::size_t>> of_tasks;
  std::map<Task, std::size_t> runs;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for_each_use(list[i], [&](SlotId slot) {
      const std::size_t slots = std::max(users_.size(), slot.index() + 1);
      users_.resize(slots);
      maker_.resize(slots);
      free_.resize(slots);
      if (list[i].op == Op::Free) {
        free_[slot.index()] = i;
      } else {
        ++users_[slot.index()];
      }
    });
    if (list[i].op == Op::Free) {
      continue;
    }
    for (const SlotUse& made : list[i].writes) {
      maker_[made.slot.index()] = i;
    }
    if (!is_of_task(list[i].op)) {
      rest_.push_back(i);
      continue;
    }
    of_tasks[list[i].task].push_back(i);
    if (list[i].op == Op::Run) {
      runs[list[i].task] = i;
    }
  }
  for (auto& [task, positions] : of_tasks) {
    const auto run = runs.find(task);
    if (run == runs.end()) {
      throw Error(
          Errc::PlanInvalid,
          fmt::format("the list has instructions of {}, which it does not run", to_string(task)));
    }
    tasks_[run->second] = std::move(positions);
  }
}

std::vector<std::size_t> DecidedTasks::take(std::size_t run) {
  const auto found = tasks_.extract(run);
  if (found.empty()) {
    throw Error(Errc::PlanInvalid,
                fmt::format("the driver named instruction {}, which is no task that is left", run));
  }
  std::vector<std::size_t> taken;
  for (const std::size_t position : found.mapped()) {
    take_with_inputs(position, taken);
  }
  return taken;
}

void DecidedTasks::take_with_inputs(std::size_t position, std::vector<std::size_t>& taken) {
  if (is_taken_[position]) {
    return;
  }
  is_taken_[position] = true;
  for (const SlotUse& read : (*list_)[position].reads) {
    const std::size_t maker = maker_[read.slot.index()];
    if (const Op op = (*list_)[maker].op; op == Op::Recv || op == Op::Regroup) {
      take_with_inputs(maker, taken);
    }
  }
  taken.push_back(position);
}

std::vector<std::size_t> DecidedTasks::frees_after(std::size_t position) {
  std::vector<std::size_t> frees;
  for_each_use((*list_)[position], [&](SlotId slot) {
    if (--users_[slot.index()] == 0) {
      frees.push_back(free_[slot.index()]);
    }
  });
  return frees;
}

const std::vector<std::size_t>& DecidedTasks::rest() const {
  if (!tasks_.empty()) {
    throw Error(Errc::PlanInvalid,
                fmt::format("the driver named no more tasks, and {} has not run",
                            to_string((*list_)[tasks_.begin()->first].task)));
  }
  return rest_;
}

}  // namespace stagecraft
