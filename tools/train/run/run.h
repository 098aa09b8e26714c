/// TrainRun is one training run from its first step to its last, with all its reports.
///
/// The sub-command makes it on the thread that runs it and uses it once.
/// TN-1: a step that was begun is finished. The run looks for signals, and for a reader of its
///       output, only between steps, also between those that it repeats.
/// TN-2: an early end of the steps changes nothing after them: the run saves, compares and closes
///       as always.
/// TN-3: a run that keeps a result (--save and the like, --metrics, --costs-out, --trace) continues
///       when its output has no reader.
/// TN-4: a run that was healed (--restarts) ends with the bits of an unbroken one, and reports each
///       step and evaluation once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/actors/watch/watch.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/common/interrupt.h"
#include "stagecraft/tools/run_record/run_folder.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/record/worker_logs.h"
#include "stagecraft/tools/train/report/progress.h"
#include "stagecraft/tools/train/report/run_output.h"
#include "stagecraft/tools/train/run/healing.h"
#include "stagecraft/tools/train/run/rank_sums.h"
#include "stagecraft/tools/train/run/reader_watch.h"
#include "stagecraft/tools/train/run/run_checkpoints.h"
#include "stagecraft/tools/train/run/run_metrics.h"
#include "stagecraft/tools/train/run/run_recovery.h"
#include "stagecraft/tools/train/run/run_timeline.h"
#include "stagecraft/tools/train/verify/one_process.h"

namespace stagecraft::tools {

class TrainRun {
 public:
  /// Starts the workers on `cluster`, which has a rank for every row of the schedule, and loads the
  /// checkpoint, if one is named. `folder`: of --run-dir, or null.
  /// Errors: those of Trainer; UsageArgument if the checkpoint of --load is already at --steps.
  TrainRun(const TrainJob& job, const Cluster& cluster, RunFolder* folder, Console& console);

  /// Trains, saves and reports.
  /// Errors: those of a step; nothing is saved then. UsageFile, after all other work, if something
  ///         could not be saved or written; if several fail, the later ones are reported on
  ///         standard error.
  ExitCode run();

 private:
  [[nodiscard]] Trainer make_trainer();
  void load(const std::string& path);
  /// Goes on from what workers have left of an earlier command, if it is not older than the newest
  /// checkpoint. Returns whether it did.
  bool attach();
  /// Takes over what evaluations have shown before, for plateau_.
  void go_on_from(const std::optional<LoopState>& loop);
  void report_start();
  void report_watch();
  void report_cut();
  void train(const Interrupt& interrupt);
  [[nodiscard]] bool ends_early(const Interrupt& interrupt);
  void with_healing(const Interrupt& interrupt, const std::function<void()>& work);
  void heal(const Error& failure, const Interrupt& interrupt);
  [[nodiscard]] LoopState loop_state() const;
  void note_processors();
  void settle(const Interrupt& interrupt);
  StepResult step();
  void train_one_process(std::int64_t until);
  StepFuture enter(std::int64_t number, const WorkBatch& batch, bool updates);
  StepResult pipeline_step(std::int64_t number, const WorkBatch& batch, bool updates);
  [[nodiscard]] std::optional<std::int64_t> tokens() const;
  [[nodiscard]] bool has_more_steps() const;
  void report(const StepResult& result);
  void evaluate();
  /// Sets the rate's factor of --lr-schedule plateau or epoch.
  void scale_rate(double factor);
  /// Does what watchers ask for between two steps, and waits while they want a pause.
  void obey_watchers(const Interrupt& interrupt);
  [[nodiscard]] bool is_stopped() const;
  /// Tells watchers how the run has ended.
  void end_watch(const std::string& how);
  [[nodiscard]] ExitCode finish(Interrupt& interrupt);
  /// Adds a failure that ends the run to the record and to the log of its rank, which it then
  /// names.
  [[nodiscard]] Error recorded(const Error& failure) const;
  [[nodiscard]] std::string told_to_user(const std::exception& error) const;
  bool close(Interrupt& interrupt);
  bool verify();
  void report_measurements(bool all);
  void report_end();

  const TrainJob& job_;
  Console& console_;
  const Cluster cluster_;
  RunFolder* const folder_;
  const WorkerLogs logs_;
  RunOutput output_;
  const ProgressForm form_;
  const std::unique_ptr<Watch> watch_;  ///< with --serve
  std::unique_ptr<Progress> progress_;
  ReaderWatch reader_;
  const std::optional<LocalBatch> local_;  ///< the first batch, if ranks read them
  const std::optional<Plateau> plateau_;
  const std::optional<std::int64_t> epoch_batches_;  ///< of the data, for rates by epoch
  LoopState loop_;                                   ///< what evaluations have shown, for plateau_
  const std::int64_t rows_;                          ///< samples of each batch
  std::optional<Trainer> trainer_;         ///< empty only if the run could not begin again
  std::optional<OneProcess> one_process_;  ///< with --verify
  std::int64_t next_of_one_process_ = 0;   ///< the batch that it trains on next
  RankSums ranks_;
  std::optional<RunCheckpoints> checkpoints_;
  std::optional<RunMetrics> metrics_;
  std::optional<RunTimeline> timeline_;  ///< begun last: it replaces an older trace
  std::optional<RunRecovery> recovery_;
  RunWork doing_ = RunWork::Reading;
  std::int64_t begun_ = 0;          ///< steps made before this run
  bool is_attached_ = false;        ///< by workers, who had their state
  std::int64_t closed_at_ = 0;      ///< the step of the closing work, once it has begun
  std::int64_t told_ = 0;           ///< the last step that was reported, or whose report was lost
  std::int64_t evaluated_ = 0;      ///< the last step whose evaluation was reported
  std::int64_t settled_ = 0;        ///< the last step behind which all is done
  bool checkpoint_wished_ = false;  ///< by a watcher, and no save of it has begun
  bool watch_knows_ranks_ = false;  ///< where they run now, and by which routes they send
  std::int64_t done_ = 0;           ///< steps that this run has reported
  double seconds_ = 0.0;            ///< of these steps
  std::vector<double> step_seconds_;
  std::optional<std::pair<std::int64_t, double>> last_loss_;  ///< with its step
  std::vector<std::string> processors_;                       ///< Trainer::processors() so far
  std::string other_processors_;  ///< the difference to the checkpoint's, or empty
};

}  // namespace stagecraft::tools
