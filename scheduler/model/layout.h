/// Layout maps the stages and rows of a schedule to the run: to copies of a model's stages, and to
/// ranks.
///
///     schedule stage   0 1 2 3      | 4 5 6 7        two replicas of a model of four stages
///     model stage      0 1 2 3      | 0 1 2 3
///     microbatches     0 .. M/2 - 1 | M/2 .. M - 1   of the step, numbered from 0 in each replica
///
///     row              0  1  2  3                    in rules, simulator and grid
///     ranks            0  1  -  2                    in plan and workers; row 2 has no task
///
/// check() or a command makes it once from a schedule; lowering, the trainer and the reports ask
/// it. No other code converts a row to a rank. A value; any thread may read.
/// LA-1: replica q's microbatch j is the step's microbatch q * M / R + j.
/// LA-2: a row stands for an ordered list of ranks: one rank if it has a task, none if it has not.
///       Ranks are numbered from 0 in the order of their rows, without a gap.
#pragma once

#include <span>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

class Layout {
 public:
  /// Errors: ScheduleParameter if some stages have a copy in every replica and others have not.
  [[nodiscard]] static Layout of(const Schedule& schedule);

  [[nodiscard]] int replicas() const { return replicas_; }
  [[nodiscard]] int model_stages() const { return stages() / replicas_; }
  /// Returns the number of the schedule's stages, over all replicas.
  [[nodiscard]] int stages() const { return static_cast<int>(model_stage_.size()); }
  [[nodiscard]] StageId model_stage(StageId s) const { return model_stage_[s.index()]; }
  [[nodiscard]] int replica(StageId s) const { return replica_[s.index()]; }
  /// Returns the schedule's stage that is copy `replica` of a model's stage.
  [[nodiscard]] StageId stage(StageId model_stage, int replica) const;

  /// Returns the model's graph once per replica, with the schedule's stage numbers; with one
  /// replica it is the model's own. Errors: ScheduleParameter if there are several replicas and the
  /// model has another number of stages than each of them.
  [[nodiscard]] StageGraph expand(const StageGraph& model) const;

  /// Returns the schedule with the step's microbatch numbers in place of each replica's own (LA-1).
  /// Its tasks no longer agree with its header.
  [[nodiscard]] Schedule with_step_microbatches(const Schedule& schedule) const;

  [[nodiscard]] int rows() const { return static_cast<int>(ranks_of_row_.size()); }
  /// Returns the number of ranks, over all rows.
  [[nodiscard]] int ranks() const { return static_cast<int>(row_of_rank_.size()); }
  [[nodiscard]] std::span<const Rank> ranks_of(int row) const {
    return ranks_of_row_[static_cast<std::size_t>(row)];
  }
  /// Returns the ranks of the stage's row; none if no row runs the stage.
  [[nodiscard]] std::span<const Rank> ranks_of(StageId s) const;
  [[nodiscard]] int row_of(Rank rank) const { return row_of_rank_[rank.index()]; }
  /// Returns the stages of the rank's row in ascending order.
  [[nodiscard]] std::vector<StageId> stages_of(Rank rank) const {
    return placement_.stages(row_of(rank));
  }

 private:
  Layout(const Schedule& schedule, const StageGraph& graph);
  void number_copies(const StageGraph& graph);
  void number_ranks(const Schedule& schedule);

  int replicas_;
  std::vector<StageId> model_stage_;  // by stage
  std::vector<int> replica_;          // by stage
  std::vector<StageId> copies_;       // by model stage, then replica
  Placement placement_;
  std::vector<std::vector<Rank>> ranks_of_row_;
  std::vector<int> row_of_rank_;
};

}  // namespace stagecraft
