/// step_record holds one step as the driver orders it and as a rank reports it. The executor takes
/// and returns these records, and they are the messages between driver and plan thread.
///
/// Each record has one list of its fields, `visit_fields` (MS-2).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/step/local_batch.h"
#include "stagecraft/actors/executor/step/loss_scale.h"
#include "stagecraft/actors/executor/step/rank_times.h"
#include "stagecraft/actors/executor/step/step_parts.h"
#include "stagecraft/base/error_value.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

/// The number of the training program; evaluations have higher numbers.
inline constexpr std::int32_t kTraining = 0;

/// The largest norm of a gradient that is not clipped.
inline constexpr double kUnclipped = std::numeric_limits<double>::infinity();

/// StepOrder orders a rank to run one step; its tensors are on their way.
struct StepOrder {
  Step step;               ///< optimizer updates so far
  std::uint64_t seed = 0;  ///< with the step, the state of random operators
  Submission submission;
  Epoch epoch;
  double learning_rate = 0.0;
  double clip = kUnclipped;  ///< largest norm of the gradient
  /// UpdateNumbers::groups of training; empty before the last batch of an update.
  std::vector<std::int64_t> group_numbers;
  LossScale loss_scale;  ///< of training
  std::int32_t program = kTraining;
  PartRuns parts;  ///< shapes and weights of the microbatches
  /// The number of batches of the same update before this one, whose gradients and buffers are kept
  /// (AC-1). 0: drop the state of an unfinished update. Evaluations set it too.
  std::int32_t accumulated = 0;
  /// False if other batches of the update follow. The step then ends before sums, vote and update.
  bool updates = true;
  /// Holds packed_facts of the state before the step. Only the driver knows them, and a driver that
  /// follows it needs them. Empty without TrainerOptions::run.
  std::string facts;
  LocalBatch local;  ///< read by the ranks themselves; if it has no source, inputs are sent
};

struct MicrobatchLoss {
  Microbatch microbatch;
  double value = 0.0;

  friend bool operator==(const MicrobatchLoss&, const MicrobatchLoss&) = default;
};

struct StepCount {
  std::string name;
  std::vector<double> numbers;
};

/// StepReport is a rank's answer. An executor does not set `timeline_rows` and `error`: it keeps
/// its timeline, and throws.
struct StepReport {
  Rank rank;
  Submission submission;   ///< that of the order
  bool committed = false;  ///< the step is one of the run: weights have changed, or it was skipped
  bool skipped = false;    ///< no weight has changed (LX-1)
  RankTimes times;
  std::vector<MicrobatchLoss> losses;  ///< ascending; empty if other ranks compute the loss
  std::vector<StepCount> counts;       ///< of this batch's microbatches on this rank (count.h)
  double gradient_norm = 0.0;
  std::int64_t timeline_rows = 0;  ///< instructions in the timeline that travels separately
  ErrorChain error;
};

template <class V>
decltype(auto) visit_fields(StepOrder& m, V&& v) {
  return v(m.step,
           m.seed,
           m.submission,
           m.epoch,
           m.learning_rate,
           m.clip,
           m.group_numbers,
           m.loss_scale,
           m.program,
           m.parts,
           m.accumulated,
           m.updates,
           m.facts,
           m.local);
}
template <class V>
decltype(auto) visit_fields(RankMemory& m, V&& v) {
  return v(m.live, m.cached, m.peak, m.page_faults);
}
template <class V>
decltype(auto) visit_fields(RankTimes& m, V&& v) {
  return v(
      m.forward, m.backward, m.update, m.waiting, m.wall, m.peak_bytes, m.peak_in_flight, m.memory);
}
template <class V>
decltype(auto) visit_fields(MicrobatchLoss& m, V&& v) {
  return v(m.microbatch, m.value);
}
template <class V>
decltype(auto) visit_fields(StepCount& m, V&& v) {
  return v(m.name, m.numbers);
}
template <class V>
decltype(auto) visit_fields(StepReport& m, V&& v) {
  return v(m.rank,
           m.submission,
           m.committed,
           m.skipped,
           m.times,
           m.losses,
           m.counts,
           m.gradient_norm,
           m.timeline_rows,
           m.error);
}

}  // namespace stagecraft
