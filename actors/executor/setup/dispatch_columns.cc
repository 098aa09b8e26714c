#include "stagecraft/actors/executor/setup/dispatch_columns.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>
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

/// Walk plays the release of a plan's tasks, to find out whether each column comes to its end: a
/// rank issues its list in order, and a transfer or a sum that stands behind a task of a later
/// column may be one that this column waits for.
class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan) {
    for (const RankPlan& rank : plan.ranks) {
      const std::size_t count = plan.list_of(rank.rank).instructions.size();
      ranks_.push_back({.plan = &rank,
                        .released = std::vector<bool>(count, false),
                        .issued = std::vector<bool>(count, false)});
    }
  }

  /// Returns whether all tasks of the column run.
  bool run(const std::vector<ReleasedTask>& column) {
    for (const ReleasedTask& task : column) {
      for (const std::size_t position : task.positions) {
        ranks_[task.rank.index()].released[position] = true;
      }
    }
    bool moves = true;
    while (moves) {
      moves = false;
      for (RankWalk& rank : ranks_) {
        moves = advance(rank) || moves;
      }
    }
    return std::ranges::all_of(column, [&](const ReleasedTask& task) {
      return std::ranges::all_of(task.positions, [&](std::size_t position) {
        return static_cast<bool>(ranks_[task.rank.index()].issued[position]);
      });
    });
  }

 private:
  struct RankWalk {
    const RankPlan* plan = nullptr;
    std::vector<bool> released, issued;
    std::size_t first = 0;  ///< that is not issued
  };
  using Transfer = std::tuple<Rank, Rank, EdgeId, Microbatch>;  // from, to

  [[nodiscard]] const std::vector<Instruction>& list(const RankWalk& rank) const {
    return plan_.list_of(rank.plan->rank).instructions;
  }

  bool advance(RankWalk& rank) {
    const std::vector<Instruction>& instructions = list(rank);
    bool moved = false;
    while (rank.first < instructions.size()) {
      if (rank.issued[rank.first]) {
        ++rank.first;
      } else if (instructions[rank.first].overlap >= 0 ? issue_group(rank)
                                                       : issue(rank, rank.first)) {
        moved = true;
      } else {
        break;
      }
    }
    return moved;
  }

  /// Issues what can be of the overlap group at the rank's place. Its tasks are in no order.
  bool issue_group(RankWalk& rank) {
    const std::vector<Instruction>& instructions = list(rank);
    const std::int32_t group = instructions[rank.first].overlap;
    bool moved = false;
    std::set<Task> stuck;
    for (std::size_t i = rank.first; i < instructions.size() && instructions[i].overlap == group;
         ++i) {
      if (!rank.issued[i] && !stuck.contains(instructions[i].task)) {
        if (issue(rank, i)) {
          moved = true;
        } else {
          stuck.insert(instructions[i].task);
        }
      }
    }
    return moved;
  }

  bool issue(RankWalk& rank, std::size_t i) {
    const Instruction& instruction = list(rank)[i];
    const Rank self = rank.plan->rank;
    const auto peer = [&] {
      return rank.plan->peers[static_cast<std::size_t>(instruction.peer.value)];
    };
    const auto microbatch = [&] {
      return tagged_microbatch(plan_.tables, *rank.plan, instruction);
    };
    switch (instruction.op) {
      case Op::Run:
        if (!rank.released[i]) {
          return false;
        }
        break;
      case Op::Send:
        sent_.emplace(self, peer(), instruction.edge, microbatch());
        break;
      case Op::Recv:
        if (peer() != kDriver && !sent_.contains({peer(), self, instruction.edge, microbatch()})) {
          return false;
        }
        break;
      case Op::Start:
        started_.emplace(
            self, instruction.group, gathers_weights(plan_.tables, instruction), instruction.round);
        break;
      case Op::Finish: {
        const PlanGroup& group = plan_.tables.groups[static_cast<std::size_t>(instruction.group)];
        if (!std::ranges::all_of(group.members(self), [&](Rank member) {
              return started_.contains({member,
                                        instruction.group,
                                        gathers_weights(plan_.tables, instruction),
                                        instruction.round});
            })) {
          return false;
        }
        break;
      }
      case Op::Free:
      case Op::Accumulate:
      case Op::Vote:
      case Op::Update:
      case Op::Regroup:
      case Op::Release:
        break;
    }
    rank.issued[i] = true;
    return true;
  }

  const Plan& plan_;
  std::vector<RankWalk> ranks_;
  std::set<Transfer> sent_;
  /// Rank, group, of weights, round.
  std::set<std::tuple<Rank, std::int32_t, bool, std::int32_t>> started_;
};

/// Takes the tasks of a cell out of the runs of the ranks of its row. `in_step`: the cell with the
/// microbatches of the step.
std::vector<ReleasedTask> taken(std::map<Rank, Runs>& runs,
                                const Cell& cell,
                                const Cell& in_step,
                                std::span<const Rank> ranks) {
  std::vector<ReleasedTask> tasks;
  for (std::size_t t = 0; t < cell.tasks().size(); ++t) {
    for (const Rank rank : ranks) {
      auto found = runs.at(rank).extract(in_step.tasks()[t]);
      for (auto& [numbered, positions] : found ? found.mapped() : Runs::mapped_type()) {
        tasks.push_back({.rank = rank,
                         .task = numbered,
                         .scheduled = cell.tasks()[t],
                         .positions = std::move(positions)});
      }
    }
  }
  return tasks;
}

/// Errors: ScheduleInvalid for a task that the schedule does not have.
void require_none_left(const std::map<Rank, Runs>& runs) {
  for (const auto& [rank, left] : runs) {
    if (!left.empty()) {
      throw Error(Errc::ScheduleInvalid,
                  fmt::format("the driver cannot dispatch this by task: rank {} runs {}, which is "
                              "in no column of the schedule; run it by its plan",
                              rank.value,
                              to_string(left.begin()->first)));
    }
  }
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
  const Schedule own = to_array(schedule.to_list(), graph);
  const Schedule array = layout.with_step_microbatches(own);
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
      std::ranges::move(taken(runs,
                              own.rows()[row][c],
                              array.rows()[row][c],
                              layout.ranks_of(static_cast<int>(row))),
                        std::back_inserter(column));
    }
  }
  require_none_left(runs);
  Walk walk(plan);
  for (std::size_t c = 0; c < result.columns.size(); ++c) {
    if (!walk.run(result.columns[c])) {
      throw Error(
          Errc::ScheduleInvalid,
          fmt::format("the driver cannot dispatch this by task: column {} waits for tasks of "
                      "later columns, behind which the ranks' lists have its transfers; "
                      "run it by its plan",
                      c + 1));
    }
  }
  return result;
}

DecidableTasks decidable_tasks(const Plan& plan,
                               const Schedule& schedule,
                               const Layout& layout,
                               const StageGraph& graph) {
  const Schedule own = schedule.to_list(), of_step = layout.with_step_microbatches(own);
  const int microbatches = plan.tables.microbatches / layout.units();
  DecidableTasks result{.schedule = own, .graph = graph, .tasks = {}, .ranks = {}};
  std::map<Rank, Runs> runs;
  for (const RankPlan& rank : plan.ranks) {
    runs[rank.rank] = runs_of(plan.list_of(rank.rank), microbatches);
    result.ranks.push_back(rank.rank);
  }
  for (std::size_t row = 0; row < own.rows().size(); ++row) {
    for (std::size_t c = 0; c < own.rows()[row].size(); ++c) {
      const Cell& cell = own.rows()[row][c];
      for (const Task& task : cell.tasks()) {
        result.tasks[task];  // makes an entry, even if no rank has something to do for it
      }
      for (ReleasedTask& task :
           taken(runs, cell, of_step.rows()[row][c], layout.ranks_of(static_cast<int>(row)))) {
        if (task.positions.size() != 1) {
          throw Error(Errc::ScheduleInvalid,
                      fmt::format("the order of {} cannot be decided while it runs, because it "
                                  "runs in chunks: run the schedule by its plan",
                                  to_string(task.scheduled)));
        }
        result.tasks[task.scheduled].push_back(std::move(task));
      }
    }
  }
  require_none_left(runs);
  return result;
}

}  // namespace stagecraft
