#include "stagecraft/actors/driver/unfinished_update.h"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

void add(RankTimes& sum, const RankTimes& times) {
  sum.forward += times.forward;
  sum.backward += times.backward;
  sum.update += times.update;
  sum.waiting += times.waiting;
  sum.wall += times.wall;
  sum.peak_bytes = std::max(sum.peak_bytes, times.peak_bytes);
  sum.peak_in_flight = std::max(sum.peak_in_flight, times.peak_in_flight);
  sum.memory.peak = std::max(sum.memory.peak, times.memory.peak);
  sum.memory.page_faults += times.memory.page_faults;
}

/// Puts the results of `earlier` in front of `later`.
StepResult joined(const StepResult& earlier, StepResult later) {
  later.losses.insert(later.losses.begin(), earlier.losses.begin(), earlier.losses.end());
  for (const auto& [name, numbers] : earlier.counts) {
    add_count(later.counts, name, numbers);
  }
  for (std::size_t r = 0; r < earlier.ranks.size() && r < later.ranks.size(); ++r) {
    add(later.ranks[r], earlier.ranks[r]);
  }
  const double seconds = earlier.seconds + later.seconds;
  if (seconds > 0.0) {
    later.bubble = (earlier.bubble * earlier.seconds + later.bubble * later.seconds) / seconds;
  }
  later.seconds = seconds;
  return later;
}

}  // namespace

std::optional<Error> UnfinishedUpdate::begin(const StepInput& batch) {
  if (batch.update != number_) {
    *this = UnfinishedUpdate();
    number_ = batch.update;
  }
  if (batch.batch != run_) {
    Error error(Errc::WorkerAborted,
                "an earlier batch of this update has failed: nothing was changed, and what was "
                "accumulated is dropped; call drop_accumulated() and begin with its first batch");
    return failure_ ? error.because(*failure_) : error;
  }
  batch_parts_ = batch.parts;
  batch_updates_ = batch.updates;
  return std::nullopt;
}

void UnfinishedUpdate::fail(const Error& why) {
  run_ = 0;
  so_far_ = {};
  parts_.clear();
  failure_ = failure_ ? failure_ : why;
}

StepResult UnfinishedUpdate::complete(StepResult batch) {
  if (batch_updates_ && run_ == 0) {
    return batch;
  }
  append(parts_, batch_parts_, static_cast<int>(batch.losses.size()));
  if (batch_updates_) {
    StepResult whole = joined(so_far_, std::move(batch));
    whole.mean_loss = mean_loss(whole.losses, parts_);
    run_ = 0;
    return whole;
  }
  so_far_ = run_ == 0 ? batch : joined(so_far_, batch);
  so_far_.timelines.clear();
  ++run_;
  return batch;
}

}  // namespace stagecraft
