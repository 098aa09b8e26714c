/// CheckedTraining is a training run that faults may hit. It compares every step that succeeds, and
/// the state after every fault, with an undisturbed run.
///
/// It throws a Violation for a broken promise. Thread: the one that made it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/tests/faults/course.h"
#include "stagecraft/tests/faults/violation.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {

/// From the end of a connection to the failure of a step.
inline constexpr std::chrono::milliseconds kClosedPromise{2000};
/// From the end of a driver to the end of its workers.
inline constexpr std::chrono::milliseconds kOrphanPromise{10'000};

/// Throws a Violation unless the error has this code and blames this rank.
void require_blamed(const Error& error, Errc code, Rank rank);

/// Its rows are so wide that the allocator gives weights and gradients memory of their own.
[[nodiscard]] Program make_wide_program(int stages);

struct Failure {
  Error error;
  double seconds = 0.0;  ///< since the strike
};

class CheckedTraining {
 public:
  /// Uses "1f1b" with one stage per rank. Errors: as Trainer.
  CheckedTraining(const Cluster& cluster, int stages);
  /// Trains two copies of two stages, on four ranks.
  struct TwoCopies {
    ReplicateOptions sums = {};
    std::string divided;  ///< as in make_execution
    bool mirror = false;
  };
  CheckedTraining(const Cluster& cluster, const TwoCopies& copies);

  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] Trainer& trainer() { return trainer_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }  ///< that were compared
  [[nodiscard]] double step_seconds() const { return step_seconds_; }

  [[nodiscard]] StepFuture begin_step();
  void check(const StepResult& result);
  void train_step() { check(begin_step().get()); }
  /// Compares the current state of all ranks.
  void check_state(const std::string& when);
  void save();

  /// Strikes this long after a step began (nothing: between two steps), and trains until a step
  /// fails, for at most `steps`. Throws a Violation if a step takes longer than `limit`.
  [[nodiscard]] std::optional<Failure> strike_and_train(
      std::optional<std::chrono::microseconds> delay,
      const std::function<void()>& strike,
      std::chrono::milliseconds limit,
      int steps);

  /// Saves one file after the other until one fails, and strikes meanwhile, so long after the first
  /// began. `trains`: with a step before each, which may be what fails, as `--save-every 1` has it.
  /// Violation when none has failed within `limit`, which is far below any deadline of a trainer.
  [[nodiscard]] Failure strike_and_save(std::chrono::microseconds delay,
                                        bool trains,
                                        const std::function<void()>& strike,
                                        std::chrono::milliseconds limit);

  /// Starts new workers, restores the last state that was kept (in neighbors' memory, by copies, or
  /// in the file), and makes a step. Returns the seconds until it was done.
  double mend(const std::vector<Rank>& lost, bool recovers);
  /// Continues after a fault that lost no worker: all ranks have the weights from after `steps`
  /// steps. Returns the seconds until a step was done.
  double go_on(std::int64_t steps);

 private:
  void recover();
  void load();

  const TemporaryFolder folder_;
  Course course_;
  const Cluster cluster_;
  Trainer trainer_;
  const std::string file_ = folder_.path() + "/weights.ckpt";
  std::int64_t saved_ = 0;
  std::int64_t steps_ = 0;
  double step_seconds_ = 0.01;
};

}  // namespace stagecraft::tests
