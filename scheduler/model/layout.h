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
/// check() or a command makes it once from a schedule. Lowering, the trainer and the reports use
/// it. No other code converts a row to a rank. A value; any thread may read.
/// LA-1: replica q's microbatch j is the schedule's microbatch q * M / R + j.
/// LA-2: a row stands for an ordered list of ranks: those of the schedule's @place, else one rank
///       if it has a task. A row without a task has none. Ranks are numbered from 0 without a gap,
///       and each belongs to one row.
/// LA-3: the ranks of a row run the same tasks, each on its share of the samples. U, the least
///       common multiple of the rows' numbers of ranks, divides a step into U units: unit u's
///       microbatch j is the step's microbatch u * M + j. Rank i of n has the U / n units from
///       i * U / n on, and runs a task once for each of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

class Layout {
 public:
  /// Errors: ScheduleParameter if some stages have a copy in every replica and others have not, and
  /// for places that break LA-2.
  [[nodiscard]] static Layout of(const Schedule& schedule);

  [[nodiscard]] int replicas() const { return replicas_; }
  [[nodiscard]] int model_stages() const { return stages() / replicas_; }
  /// Returns the number of the schedule's stages, over all replicas.
  [[nodiscard]] int stages() const { return static_cast<int>(model_stage_.size()); }
  [[nodiscard]] StageId model_stage(StageId s) const { return model_stage_[s.index()]; }
  [[nodiscard]] int replica(StageId s) const { return replica_[s.index()]; }
  /// Returns the schedule's stage that is copy `replica` of a model's stage.
  [[nodiscard]] StageId stage(StageId model_stage, int replica) const;

  /// Returns the model's graph once per replica, with the schedule's stage numbers. With one
  /// replica it is the model's own graph.
  /// Errors: ScheduleParameter if there are several replicas and the model has another number of
  /// stages than each of them.
  [[nodiscard]] StageGraph expand(const StageGraph& model) const;

  /// Returns the schedule with its microbatches numbered over all replicas (LA-1). Its tasks no
  /// longer agree with its header.
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
  /// Returns the position of the rank in the list of its row.
  [[nodiscard]] int member_of(Rank rank) const;
  /// Returns whether every row with a task has one rank.
  [[nodiscard]] bool is_single() const { return ranks() == 0 || units_ == 1; }
  /// Returns the number of units of a step (LA-3).
  [[nodiscard]] int units() const { return units_; }
  /// Returns how many units each rank of the stage's row has.
  [[nodiscard]] int units_per_rank(StageId s) const;
  /// Returns the stages of the rank's row in ascending order.
  [[nodiscard]] std::vector<StageId> stages_of(Rank rank) const {
    return placement_.stages(row_of(rank));
  }

 private:
  Layout(const Schedule& schedule, const StageGraph& graph);
  void number_copies(const StageGraph& graph);
  void number_ranks(const Schedule& schedule);
  void take_places(const Schedule& schedule);

  int replicas_;
  std::vector<StageId> model_stage_;  // by stage
  std::vector<int> replica_;          // by stage
  std::vector<StageId> copies_;       // by model stage, then replica
  Placement placement_;
  std::vector<std::vector<Rank>> ranks_of_row_;
  std::vector<int> row_of_rank_;
  int units_ = 1;
};

/// RowShare tells how many ranks a row stands for, and how many units each of them has (LA-3).
struct RowShare {
  int ranks = 1;
  int units = 1;
};

/// Returns the shares by row; for a row without a rank, and for places that break LA-2, one rank
/// with one unit.
[[nodiscard]] std::vector<RowShare> row_shares(const Schedule& schedule);

/// Returns the ranks of every row (LA-2). Places that break LA-2 are ignored.
[[nodiscard]] std::vector<std::vector<Rank>> ranks_of_rows(const Schedule& schedule);

/// Returns how the schedule's places break LA-2; empty if they keep it.
[[nodiscard]] std::string place_fault(const Schedule& schedule);

/// Returns the schedule with its whole pipeline on `copies` times as many ranks. Copy c of a row's
/// rank r is rank c * R + r, where R is the number of ranks of one pipeline.
/// Errors: ScheduleParameter for a number below 1, for more than kMaxRanks ranks, and for a
/// schedule that has places already.
[[nodiscard]] Schedule in_copies(const Schedule& schedule, int copies);

}  // namespace stagecraft
