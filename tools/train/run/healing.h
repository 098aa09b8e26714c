/// Healing decides whether a run with --restarts goes on after a failure, and counts.
///
/// The run asks it about each failure, before it replaces workers; single-threaded.
/// HG-1: only the loss of a worker, a step beyond its deadline for which one rank is to blame, and
///       a rank's lack of memory are healed. Any other error is the model's, the data's or ours,
///       and would come again.
/// HG-2: a worker that fails twice in the same task of the same step ends the run: the batch is
///       the cause, not the machine.
/// HG-3: every failure counts, also one while a run is being healed.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "stagecraft/base/clock.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tools {

struct HealingLimits {
  /// More failures than this within a window come from a cause that no new worker removes.
  static constexpr int kMostInWindow = 5;

  std::int64_t restarts = 0;  ///< in the whole run; 0: nothing is healed
  std::chrono::duration<double> window{0.0};
};

/// Returns whether another worker can remove the cause of a failure. `ranks`: of the run.
[[nodiscard]] bool is_healable(const Error& failure, int ranks);

class Healing {
 public:
  Healing(const HealingLimits& limits,
          int ranks,
          std::shared_ptr<const Clock> clock = Clock::current())
      : limits_(limits), ranks_(ranks), clock_(std::move(clock)) {}

  /// Counts a failure that is to be healed. `step`: the one in progress, from 1. `in_step`: the
  /// failure came in it, not while the run was being healed.
  /// Errors: the failure itself, if it is not to be healed, with the reason behind its text unless
  ///         there are no restarts or HG-1 forbids it.
  void admit(const Error& failure, std::int64_t step, bool in_step);

  /// Returns the failures counted so far.
  [[nodiscard]] std::int64_t restarts() const { return restarts_; }

 private:
  const HealingLimits limits_;
  const int ranks_;
  const std::shared_ptr<const Clock> clock_;
  std::int64_t restarts_ = 0;
  std::deque<Clock::Time> recent_;                         ///< times of the last kMostInWindow
  std::set<std::pair<std::int64_t, std::string>> failed_;  ///< steps and tasks (HG-2)
};

}  // namespace stagecraft::tools
