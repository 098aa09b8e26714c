/// WaitBoard shows the peers for which a rank currently waits.
///
/// The rank's plan thread waits through it, for one peer or for the members of a group. The rank's
/// agent reads it meanwhile. The mutex guards the list, because two threads use it.
/// WB-1: a peer is listed only if it has not delivered at the time of the question.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/clock.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// Arrival is a tensor on its way, with its sender.
using Arrival = std::pair<Rank, Future<at::Tensor>>;

class WaitBoard {
 public:
  explicit WaitBoard(std::shared_ptr<const Clock> clock = Clock::current())
      : clock_(std::move(clock)) {}

  /// Waits until all have arrived or failed. Returns false if some have not at the deadline, a time
  /// of the board's clock. While it waits, the thread is not at work (process_end.h).
  [[nodiscard]] bool wait(const std::vector<Arrival>& arrivals, Deadline deadline);

  /// Returns the clock of the deadlines.
  [[nodiscard]] const Clock& clock() const { return *clock_; }

  /// Returns the peers that have not delivered, in the order of the wait; empty if the rank does
  /// not wait.
  [[nodiscard]] std::vector<Rank> missing() const;

 private:
  const std::shared_ptr<const Clock> clock_;
  mutable std::mutex mutex_;
  std::vector<Arrival> waiting_;
};

}  // namespace stagecraft
