/// EndedWorkers records the workers of a crew that have ended, for the crew's waits.
///
/// A crew has one. From its launch on, each worker reports its end here, so losses are known even
/// while there is no driver. The mutex guards the list: workers end on threads of the
/// actor system while the caller's thread waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "stagecraft/actors/messages/caf_types.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

class EndedWorkers {
 public:
  enum class Waited : std::uint8_t { Complete, Lost, Late };

  explicit EndedWorkers(int ranks, std::shared_ptr<const Clock> clock = Clock::current())
      : clock_(std::move(clock)),
        known_(std::make_shared<Known>(static_cast<std::size_t>(ranks))) {}

  /// Begins to watch this worker: from now on the rank is lost when this worker ends, and only
  /// then.
  void watch(Rank rank, const Worker& worker);

  [[nodiscard]] bool has(Rank rank) const;

  /// Waits until `awaited` is complete or one of `ranks` is lost, at most until the deadline, a
  /// time of the clock.
  /// Returns Complete if both have happened.
  template <class T>
  [[nodiscard]] Waited wait(const Future<T>& awaited,
                            const std::vector<Rank>& ranks,
                            Deadline deadline) const {
    const process_end::Elsewhere elsewhere;
    awaited.on_ready([known = known_] { known->tell(); });
    std::unique_lock lock(known_->mutex);
    const auto over = [&] { return awaited.ready() || known_->any_of(ranks); };
    static_cast<void>(clock_->wait_until(known_->changed, lock, deadline, over));
    if (awaited.ready()) {
      return Waited::Complete;
    }
    return known_->any_of(ranks) ? Waited::Lost : Waited::Late;
  }

 private:
  struct Turn {
    std::int64_t number = 0;  ///< counts the workers of the rank
    bool lost = false;
  };
  struct Known {
    explicit Known(std::size_t ranks) : turns(ranks) {}

    void tell();
    /// Requires: the caller holds the mutex.
    [[nodiscard]] bool any_of(const std::vector<Rank>& ranks) const;

    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Turn> turns;  ///< by rank
  };

  std::shared_ptr<const Clock> clock_;
  std::shared_ptr<Known> known_;  ///< shared with the callbacks of the workers' ends
};

}  // namespace stagecraft
