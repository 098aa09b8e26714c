#include "stagecraft/actors/executor/setup/dispatch_columns.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/simulate/to_array.h"

namespace stagecraft {
namespace {

/// Positions of the Runs of a rank's list by the task of the schedule that they run, then by the
/// task as the rank numbers it: one for each unit of samples (LA-3).
using Runs = std::map<Task, std::map<Task, std::vector<std::size_t>>>;

Runs runs_of(const RankList& list, int microbatches) {
  Runs runs;
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    const Instruction& instruction = list.instructions[i];
    if (instruction.op == Op::Run) {
      Task scheduled = instruction.task;
      scheduled.microbatch = Microbatch(scheduled.microbatch.value % microbatches);
      runs[scheduled][instruction.task].push_back(i);
    }
  }
  return runs;
}

void add_vote(const RankList& list, Rank rank, std::vector<ReleasedTask>& votes) {
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    if (list.instructions[i].op == Op::Vote) {
      votes.push_back({.rank = rank, .task = {}, .positions = {i}});
    }
  }
}

}  // namespace

DispatchColumns dispatch_columns(const Plan& plan,
                                 const Schedule& schedule,
                                 const Layout& layout,
                                 const StageGraph& graph) {
  const Schedule array = layout.with_step_microbatches(to_array(schedule.to_list(), graph));
  const int microbatches = plan.tables.microbatches / layout.units();
  DispatchColumns result;
  std::map<Rank, Runs> runs;  // those in no column yet
  for (const RankPlan& rank : plan.ranks) {
    runs[rank.rank] = runs_of(plan.list_of(rank.rank), microbatches);
    add_vote(plan.list_of(rank.rank), rank.rank, result.votes);
  }
  for (std::size_t c = 0; c < array.columns(); ++c) {
    std::vector<ReleasedTask>& column = result.columns.emplace_back();
    for (std::size_t row = 0; row < array.rows().size(); ++row) {
      if (c >= array.rows()[row].size()) {
        continue;
      }
      for (const Task& task : array.rows()[row][c].tasks()) {
        for (const Rank rank : layout.ranks_of(static_cast<int>(row))) {
          auto found = runs.at(rank).extract(task);
          for (auto& [own, positions] : found ? found.mapped() : Runs::mapped_type()) {
            column.push_back({.rank = rank, .task = own, .positions = std::move(positions)});
          }
        }
      }
    }
  }
  for (const auto& [rank, left] : runs) {
    if (!left.empty()) {
      throw Error(Errc::ScheduleInvalid,
                  fmt::format("the driver cannot dispatch this by task: rank {} runs {}, which is "
                              "in no column of the schedule; run it by its plan",
                              rank.value,
                              to_string(left.begin()->first)));
    }
  }
  return result;
}

}  // namespace stagecraft
