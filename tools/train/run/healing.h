/// Healing decides whether a run with --restarts goes on after a failure, and counts.
///
/// The run asks it about each failure, before it replaces workers; single-threaded.
/// HG-1: only the loss of a worker, a step or an answer beyond its deadline for which one rank is
///       to blame, and a rank's lack of memory are healed, and only if the rank has a process that
///       can be replaced. Any other error is the model's, the data's or ours, and would come again.
/// HG-2: a rank that fails twice in the same task of the same step, or of the same evaluation, ends
///       the run: the batch is the cause, not the machine.
/// HG-3: every failure counts, also one while a run is being healed.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stagecraft/base/clock.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tools {

struct HealingLimits {
  /// More failures than this within a window come from a cause that no new worker removes.
  static constexpr int kMostInWindow = 5;

  std::int64_t restarts = 0;  ///< in the whole run; 0: nothing is healed
  std::chrono::duration<double> window{0.0};
};

/// RunWork is what a run does when it fails.
enum class RunWork : std::uint8_t {
  Step,
  Evaluation,
  Reading,  ///< of the ranks' state, to save it or to compare it
};

/// Returns whether another worker can remove the cause of a failure. `replaceable`: the ranks that
/// have a process of their own.
[[nodiscard]] bool is_healable(const Error& failure, const std::vector<Rank>& replaceable);

class Healing {
 public:
  Healing(const HealingLimits& limits,
          std::vector<Rank> replaceable,
          std::shared_ptr<const Clock> clock = Clock::current())
      : limits_(limits), replaceable_(std::move(replaceable)), clock_(std::move(clock)) {}

  /// Counts a failure that is to be healed. `step`: the one in progress or the next, from 1.
  /// `work`: what failed; none: the run was being healed.
  /// Errors: the failure itself, if it is not to be healed, with the reason behind its text unless
  ///         there are no restarts or HG-1 forbids it.
  void admit(const Error& failure, std::int64_t step, std::optional<RunWork> work);

  /// Returns the failures counted so far.
  [[nodiscard]] std::int64_t restarts() const { return restarts_; }

 private:
  [[nodiscard]] bool is_first(const Error& failure, std::int64_t step, RunWork work);

  const HealingLimits limits_;
  const std::vector<Rank> replaceable_;
  const std::shared_ptr<const Clock> clock_;
  std::int64_t restarts_ = 0;
  std::deque<Clock::Time> recent_;  ///< times of the last kMostInWindow
  /// Tasks in which ranks have failed (HG-2).
  std::set<std::tuple<RunWork, std::int64_t, std::optional<Rank>, std::string>> failed_;
};

}  // namespace stagecraft::tools
