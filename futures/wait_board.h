/// WaitBoard: whom a rank waits for just now, for whoever asks while it waits.
///
/// The rank's plan thread waits through it, be it for one peer or for the members of a group; its
/// agent reads it. The mutex guards the list, which is shared for that reason alone.
/// WB-1: whoever is named has not delivered when the question is answered; one that has arrived is
///       left out at once.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// A tensor on its way, and who sends it.
using Arrival = std::pair<Rank, Future<at::Tensor>>;

class WaitBoard {
 public:
  /// Waits until all have arrived, or failed; false when some have not at the deadline. While it
  /// waits the thread is not at work (base/process_end.h).
  [[nodiscard]] bool wait(const std::vector<Arrival>& arrivals, Deadline deadline);

  /// Who has not delivered, in the order of the wait; empty while nobody is waited for.
  [[nodiscard]] std::vector<Rank> missing() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Arrival> waiting_;
};

}  // namespace stagecraft
