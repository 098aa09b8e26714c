/// TrainRun: one training run from its first step to its last, with all its reports.
///
/// Made by the sub-command on the thread that runs it, used once.
/// TN-1: a step that was begun is finished. The run looks for signals, and for a reader of its
///       output, only between steps.
/// TN-2: an early end of the steps changes nothing after them: the run saves, compares and closes
///       as always.
/// TN-3: a run that keeps a result (--save and the like, --metrics, --costs-out, --trace) continues
///       when its output has no reader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/common/interrupt.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/report/progress.h"
#include "stagecraft/tools/train/report/rank_table.h"
#include "stagecraft/tools/train/report/run_output.h"
#include "stagecraft/tools/train/run/run_checkpoints.h"
#include "stagecraft/tools/train/run/run_metrics.h"
#include "stagecraft/tools/train/run/run_timeline.h"
#include "stagecraft/tools/train/run/verify.h"

namespace stagecraft::tools {

/// Starts workers before anything computes, with --processor common: as many as the options alone
/// say. Returns none otherwise. Errors: those of Cluster::spawn.
[[nodiscard]] std::optional<Cluster> make_held_cluster(const TrainOptions& options,
                                                       Console& console);

/// Returns the ranks that the options ask for: those of `held`, if given.
/// Errors: those of Cluster::spawn; UsageArgument if `held` has too few.
[[nodiscard]] Cluster make_cluster(const TrainJob& job, const std::optional<Cluster>& held);

class TrainRun {
 public:
  /// Starts the workers on `cluster`, which has a rank for every row of the schedule, and loads the
  /// checkpoint, if one is named.
  /// Errors: those of Trainer; UsageArgument if the checkpoint is already at --steps.
  TrainRun(const TrainJob& job, const Cluster& cluster, Console& console);

  /// Trains, saves and reports.
  /// Errors: those of a step; nothing is saved then. UsageFile, after all other work, if something
  ///         could not be saved or written; if several fail, the later ones are reported on
  ///         standard error.
  ExitCode run();

 private:
  void load(const std::string& path);
  void tell_resumed();
  void tell_cut();
  void train(const Interrupt& interrupt);
  StepResult step();
  StepFuture enter(std::int64_t number, const WorkBatch& batch, bool updates);
  StepResult pipeline_step(std::int64_t number, const WorkBatch& batch, bool updates);
  [[nodiscard]] std::optional<std::int64_t> tokens() const;
  void report(const StepResult& result);
  void evaluate();
  [[nodiscard]] bool worth_going_on();
  void tell_of_output();
  bool close(Interrupt& interrupt);
  void save();
  void save_weights();
  void save_module();
  bool verify();
  void finish();

  const TrainJob& job_;
  Console& console_;
  const Cluster cluster_;
  RunOutput output_;
  const ProgressForm form_;
  std::unique_ptr<Progress> progress_;
  const std::optional<LocalBatch> local_;  ///< the first batch, if ranks read them
  const std::int64_t rows_;                ///< samples of each batch
  Trainer trainer_;
  std::optional<Reference> reference_;
  Verifier verifier_;
  std::vector<RankTotals> totals_;
  std::optional<RunCheckpoints> checkpoints_;
  std::optional<RunMetrics> metrics_;
  std::optional<RunTimeline> timeline_;  ///< begun last: it replaces an older trace
  std::int64_t done_ = 0;                ///< steps of this run, without those of a checkpoint
  double seconds_ = 0.0;                 ///< of these steps
  std::vector<double> step_seconds_;
  double last_loss_ = 0.0;
  bool told_of_output_ = false;   ///< the run has reported that its output has no reader
  std::string other_processors_;  ///< how they differ from the checkpoint's, or empty
};

}  // namespace stagecraft::tools
