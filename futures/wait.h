/// wait_all and wait_any wait for several futures at once.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "stagecraft/base/clock.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// Returns whether all are complete by the deadline, a time of `clock`.
template <class T>
[[nodiscard]] bool wait_all(const std::vector<Future<T>>& futures,
                            Deadline deadline,
                            const Clock& clock = *Clock::current()) {
  for (const Future<T>& future : futures) {
    (void)future.ready();  // wants all values before it waits for the first
  }
  for (const Future<T>& future : futures) {
    if (!future.wait_until(deadline, clock)) {
      return false;
    }
  }
  return true;
}

/// Returns the position of a future that is complete, the first one if there are several; nothing
/// if none is by the deadline, a time of `clock`.
template <class T>
[[nodiscard]] std::optional<std::size_t> wait_any(const std::vector<Future<T>>& futures,
                                                  Deadline deadline,
                                                  const Clock& clock = *Clock::current()) {
  struct Bell {
    std::mutex mutex;
    std::condition_variable rung;
    bool has_rung = false;
  };
  const auto first_ready = [&]() -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < futures.size(); ++i) {
      if (futures[i].ready()) {
        return i;
      }
    }
    return std::nullopt;
  };
  if (const auto ready = first_ready()) {
    return ready;
  }
  const auto bell = std::make_shared<Bell>();
  std::vector<CallbackId> callbacks;
  for (const Future<T>& future : futures) {
    callbacks.push_back(future.on_ready([bell] {
      const std::scoped_lock lock(bell->mutex);
      bell->has_rung = true;
      bell->rung.notify_all();
    }));
  }
  {
    std::unique_lock lock(bell->mutex);
    (void)clock.wait_until(bell->rung, lock, deadline, [&] { return bell->has_rung; });
  }
  for (std::size_t i = 0; i < futures.size(); ++i) {
    futures[i].forget(callbacks[i]);  // a loop over thousands of futures must not pile them up
  }
  return first_ready();
}

}  // namespace stagecraft
