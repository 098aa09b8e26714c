/// Replicas: what the stages of a schedule stand for when it runs several copies of a pipeline.
///
///     schedule stage   0 1 2 3      | 4 5 6 7        two replicas of a model of four stages
///     model stage      0 1 2 3      | 0 1 2 3
///     microbatches     0 .. M/2 - 1 | M/2 .. M - 1   of the step, numbered from 0 in each replica
///
/// Read off a schedule's replica pairs; used to check a schedule against a model and to run it. A
/// value; any thread may read.
/// RP-1: replica q's microbatch j is the step's microbatch q * M / R + j.
#pragma once

#include <vector>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

class Replicas {
 public:
  /// Errors: ScheduleParameter when some stages have a copy in every replica and others have not.
  explicit Replicas(const Schedule& schedule);

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] int model_stages() const { return static_cast<int>(model_stage_.size()) / count_; }
  /// The stages of the schedule, over all replicas.
  [[nodiscard]] int stages() const { return static_cast<int>(model_stage_.size()); }
  [[nodiscard]] StageId model_stage(StageId s) const { return model_stage_[s.index()]; }
  [[nodiscard]] int replica(StageId s) const { return replica_[s.index()]; }
  /// The schedule's stage that is copy `replica` of a model's stage.
  [[nodiscard]] StageId stage(StageId model_stage, int replica) const;

  /// The model's graph once per replica, under the schedule's stage numbers; with one replica the
  /// model's own. Errors: ScheduleParameter when the model has another number of stages than each
  /// of several replicas.
  [[nodiscard]] StageGraph expand(const StageGraph& model) const;

  /// The schedule with the step's microbatch numbers in place of each replica's own (RP-1). Its
  /// tasks are no longer those of its header.
  [[nodiscard]] Schedule with_step_microbatches(const Schedule& schedule) const;

 private:
  int count_ = 1;
  std::vector<StageId> model_stage_;  // by stage
  std::vector<int> replica_;          // by stage
  std::vector<StageId> copies_;       // by model stage, then replica
};

}  // namespace stagecraft
