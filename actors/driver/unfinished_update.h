/// UnfinishedUpdate is the driver's record of an update of several batches, from its first batch to
/// its last: how many have run, and their combined result.
///
/// The driver makes it; it has no actor and no clock. An update of one batch passes through
/// unchanged.
/// UU-1: a batch runs only if all batches of its update before it ran, in order: an update never
///       uses a part of the caller's batches. If one fails, all later ones fail too.
/// UU-2: the result of the last batch covers the whole update: losses of all batches, in order,
///       their mean by weights (PT-2), and the sums of counts and times. Its timelines are its own.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

class UnfinishedUpdate {
 public:
  /// Begins to train on a batch. Returns the reason why it cannot run, or nothing. Keeps UU-1.
  [[nodiscard]] std::optional<Error> begin(const StepInput& batch);

  /// Returns how many batches of the update in progress have run.
  [[nodiscard]] std::int32_t accumulated() const { return run_; }

  /// Records that the batch begun last has failed, or cannot begin.
  void fail(const Error& why);

  /// Records that the batch is done. Returns the result for its future.
  [[nodiscard]] StepResult complete(StepResult batch);

 private:
  std::int64_t number_ = -1;  // of the update
  std::int32_t run_ = 0;
  std::optional<Error> failure_;  // of a batch of this update
  StepResult so_far_;
  PartRuns parts_;  // of so_far_
  PartRuns batch_parts_;
  bool batch_updates_ = true;
};

}  // namespace stagecraft
