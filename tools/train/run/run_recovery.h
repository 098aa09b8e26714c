/// RunRecovery heals a run with --restarts: it puts new workers in the places of lost ones, and
/// takes all ranks back to the newest state that is left.
///
///   a failure --> admitted by Healing? --> replace the lost workers --> restore the state
///                        ^                          |                          |
///                        +---- another failure -----+--------------------------+
///
/// The run calls it after a failure; single-threaded.
/// RR-1: the state comes from mirrors, or from ranks that train copies of the same stages; if these
///       have none that is whole, from the newest whole checkpoint of this run, else from that with
///       which the run began; without any, the run begins again.
/// RR-2: starts of a worker that fail are repeated within the time that it has to join; with
///       --spares, each on all hosts that may take it. If it has not come by then, the run ends:
///       nothing suggests that the next one would.
/// RR-3: an error that leaves has the failure that began it among its causes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/record/worker_logs.h"
#include "stagecraft/tools/train/report/progress.h"
#include "stagecraft/tools/train/run/healing.h"
#include "stagecraft/tools/train/run/run_checkpoints.h"

namespace stagecraft::tools {

/// ReplacedWorker is a worker that was lost, and the one in its place.
struct ReplacedWorker {
  WorkerPlace lost, now;
};

/// Healed says how a run was healed.
struct Healed {
  enum class From : std::uint8_t { Mirrors, Copies, Checkpoint, Start };

  std::int64_t step = 0;                ///< that was in progress
  std::vector<std::string> failures;    ///< the one that began it, and those on the way
  std::vector<ReplacedWorker> workers;  ///< each rank once
  From from = From::Start;
  std::string file;  ///< the checkpoint, if it comes from one
  double seconds = 0.0;
};

/// Loads a checkpoint, with the seed that --seed-from names.
void load_checkpoint(Trainer& trainer, const CheckpointReader& file, const TrainOptions& options);

/// Takes the ranks back to the newest state of which there are copies. Returns false if no copies
/// have a whole state. Errors: those of Trainer::recover about a lost rank, and others.
[[nodiscard]] bool recover_from_copies(Trainer& trainer);

class RunRecovery {
 public:
  /// `make_trainer`: as at the start of the run. `job`, `cluster` and `logs` outlive it.
  /// Requires: the run's trainer exists, so workers are in their places.
  RunRecovery(const TrainJob& job,
              const Cluster& cluster,
              const WorkerLogs& logs,
              std::function<Trainer()> make_trainer);

  /// Heals the run. The trainer may then be at an earlier step. `work`: what failed. `trainer`:
  /// replaced if the run begins again; empty if making the new one fails. `ends`: says that the run
  /// is to end, so that no further try is worth its time.
  /// Errors: those of Healing::admit, for this failure or one on the way; those of a worker that
  ///         does not come; UsageFile, CheckpointFormat of the checkpoint with which the run began.
  [[nodiscard]] Healed heal(const Error& failure,
                            RunWork work,
                            std::optional<Trainer>& trainer,
                            RunCheckpoints& checkpoints,
                            const std::function<bool()>& ends);

  /// Returns the failures that were healed, those on the way included.
  [[nodiscard]] std::int64_t restarts() const { return healing_.restarts(); }

  /// Reports it in one line, and in the logs of the workers. `after`: the step to which the run
  /// went back. `told`: the last step that was reported; steps between are made again.
  void report(const Healed& healed,
              std::int64_t after,
              std::int64_t told,
              Progress& progress) const;

 private:
  [[nodiscard]] std::vector<Rank> lost_ranks(const Error& failure) const;
  void replace(const Error& failure, const std::function<bool()>& ends, Healed& healed);
  void note_replaced(Healed& healed);
  void restore(std::optional<Trainer>& trainer, RunCheckpoints& checkpoints, Healed& healed) const;

  const TrainJob& job_;
  const Cluster& cluster_;
  const WorkerLogs& logs_;
  const std::function<Trainer()> make_trainer_;
  const bool has_copies_;  ///< of stages
  const std::shared_ptr<const Clock> clock_ = Clock::current();
  std::vector<WorkerPlace> workers_;  ///< by rank, as they were last seen to work
  Healing healing_;
};

}  // namespace stagecraft::tools
