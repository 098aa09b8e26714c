/// LoopState is what a loop over a trainer must know to continue after a checkpoint: its place in
/// the data, and what its evaluations have shown.
///
/// fit() keeps it, a loop of yours may, and checkpoints have it. LoopStates holds those of a
/// trainer; its caller's thread writes them, and the driver's may read.
/// LZ-1: a checkpoint has the state of exactly its updates, also if it was taken while further
///       steps were in progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace stagecraft {

/// Goal says which values of a metric are better.
enum class Goal : std::uint8_t { Min, Max };

/// WatchState is what the evaluations so far have shown of the watched metric (validation.h).
struct WatchState {
  std::string metric = {};           ///< its name; empty before the first evaluation
  Goal goal = Goal::Min;             ///< by which the values below were judged
  std::optional<double> best = {};   ///< the best value so far
  std::int64_t best_step = 0;        ///< updates after which it was found
  std::optional<double> mark = {};   ///< the last improvement, which the next must surpass
  std::int64_t waited = 0;           ///< evaluations since then
  std::int64_t waited_for_rate = 0;  ///< of these, the ones since the rate fell
  double rate_factor = 1.0;          ///< to which rates have fallen on plateaus

  friend bool operator==(const WatchState&, const WatchState&) = default;
};

struct LoopState {
  std::int64_t epoch = 1;      ///< counted from 1
  std::int64_t batches = 0;    ///< of this epoch, in updates that were made
  std::string random = {};     ///< LibTorch's default generator before the epoch (random.h)
  std::int64_t evaluated = 0;  ///< updates after which the loop evaluated last
  WatchState watch = {};

  friend bool operator==(const LoopState&, const LoopState&) = default;
};

/// Returns whether a run of `steps` updates can have this state. A state may come from a file that
/// anyone has written: long texts are refused, too.
[[nodiscard]] bool is_possible(const LoopState& state, std::int64_t steps);

class LoopStates {
 public:
  /// `most`: states to keep, those of the most updates: at least one more than steps in progress.
  explicit LoopStates(std::size_t most) : most_(most) {}

  void put(std::int64_t steps, LoopState state);
  /// Forgets the others.
  void replace(std::int64_t steps, const std::optional<LoopState>& state);
  /// Returns the state after so many updates, if a loop has told it.
  [[nodiscard]] std::optional<LoopState> at(std::int64_t steps) const;

 private:
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::map<std::int64_t, LoopState> states_;
};

}  // namespace stagecraft
