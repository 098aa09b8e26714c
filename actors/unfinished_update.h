/// UnfinishedUpdate: an update of several batches as the driver sees it, from its first batch to
/// its last: how many have been run, and what came of them together.
///
/// Made by the driver; no actor, no clock. An update of one batch passes through as it is.
/// UU-1: a batch is run only when all before it of its update were, one after the other: nothing is
///       updated by a part of what the caller has given. When one fails, so do those behind it.
/// UU-2: what the last batch answers is of the whole update: losses of all, in order, their mean
///       by samples (PT-2), and the sums of times. Its timelines are its own.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/step_ledger.h"
#include "stagecraft/actors/step_result.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

class UnfinishedUpdate {
 public:
  /// A batch is to be trained on. Returns why it cannot be, or nothing. Keeps UU-1.
  [[nodiscard]] std::optional<Error> begin(const StepInput& batch);

  /// Batches of the update under way that have been run.
  [[nodiscard]] std::int32_t accumulated() const { return run_; }

  /// The batch that was begun last has failed, or cannot be begun.
  void fail(const Error& why);

  /// It is done; returns what its future gets.
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
