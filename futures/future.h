/// Promise and Future hold a value that is not there yet.
///
/// A transport makes one pair per receive, the driver one per step. The promise stays with the code
/// that completes it; futures are copied to readers. Both ends share one cell. Its mutex guards the
/// outcome and the list of callbacks, because the two ends live on different threads. No other code
/// runs under it.
///
/// F-1: a future completes exactly once: with a value, with an Error, or cancelled (an Error of
///      Errc::Cancelled).
/// F-2: a promise that is destroyed unfulfilled completes with Errc::Internal, so no reader waits
///      for ever.
/// F-3: the value lives in the cell until the last future is destroyed; get() copies it (for a
///      tensor: the handle).
/// F-4: a callback runs exactly once, with no lock held, on the thread that completes the promise
///      (on the registering thread if the future is already complete). It must not throw and must
///      not block: the completing thread may be another rank's plan thread. So post to a mailbox of
///      your own instead of working there.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/base/check.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

using Deadline = Clock::Time;

namespace detail {

template <class T>
class FutureCell {
 public:
  /// Returns false and changes nothing if the cell is already complete (keeps F-1). A callback that
  /// throws breaks F-4 and ends the program here, not in a thread that cannot handle it.
  template <class Outcome>
  bool complete(Outcome&& outcome) noexcept {
    std::vector<std::function<void()>> callbacks;
    {
      const std::scoped_lock lock(mutex_);
      if (done()) {
        return false;
      }
      outcome_ = std::forward<Outcome>(outcome);
      callbacks.swap(callbacks_);
    }
    completed_.notify_all();
    for (const auto& callback : callbacks) {
      callback();
    }
    return true;
  }

  void on_ready(std::function<void()> callback) {
    {
      const std::scoped_lock lock(mutex_);
      if (!done()) {
        callbacks_.push_back(std::move(callback));
        return;
      }
    }
    callback();
  }

  [[nodiscard]] bool ready() const {
    const std::scoped_lock lock(mutex_);
    return done();
  }

  [[nodiscard]] bool wait_until(Deadline deadline, const Clock& clock) const {
    std::unique_lock lock(mutex_);
    return clock.wait_until(completed_, lock, deadline, [this] { return done(); });
  }

  [[nodiscard]] T get() const {
    std::unique_lock lock(mutex_);
    completed_.wait(lock, [this] { return done(); });
    if (const Error* error = std::get_if<Error>(&outcome_)) {
      throw Error(*error);
    }
    return std::get<T>(outcome_);
  }

 private:
  struct Pending {};

  [[nodiscard]] bool done() const { return !std::holds_alternative<Pending>(outcome_); }

  mutable std::mutex mutex_;
  mutable std::condition_variable completed_;
  std::variant<Pending, T, Error> outcome_;
  std::vector<std::function<void()>> callbacks_;
};

}  // namespace detail

/// Future is the reading end: a copyable handle. All copies see the same outcome. A
/// default-constructed future has no promise: assign to it or ask `valid()`, nothing else. For a
/// future without a value use T = std::monostate.
template <class T>
class Future {
 public:
  Future() = default;

  [[nodiscard]] bool valid() const { return cell_ != nullptr; }

  [[nodiscard]] bool ready() const { return cell().ready(); }

  /// Returns true if the future is complete by the deadline, a time of `clock`.
  [[nodiscard]] bool wait_until(Deadline deadline, const Clock& clock = *Clock::steady()) const {
    return cell().wait_until(deadline, clock);
  }

  /// Returns the value; may be called any number of times. Waits without a deadline, so the runtime
  /// calls `wait_until` first.
  /// Errors: rethrows the Error that completed the future; Errc::Cancelled if it was cancelled.
  [[nodiscard]] T get() const { return cell().get(); }

  /// Registers a callback, which runs once as F-4 says.
  void on_ready(std::function<void()> callback) const { cell().on_ready(std::move(callback)); }

 private:
  template <class>
  friend class Promise;

  explicit Future(std::shared_ptr<detail::FutureCell<T>> cell) : cell_(std::move(cell)) {}

  [[nodiscard]] detail::FutureCell<T>& cell() const {
    SC_CHECK(cell_ != nullptr, "a future without a promise was used");
    return *cell_;
  }

  std::shared_ptr<detail::FutureCell<T>> cell_;
};

/// Promise is the completing end. It can be moved but not copied.
template <class T>
class Promise {
 public:
  Promise() : cell_(std::make_shared<detail::FutureCell<T>>()) {}
  Promise(Promise&& other) noexcept = default;
  Promise& operator=(Promise&& other) noexcept {
    Promise dropped(std::move(other));
    cell_.swap(dropped.cell_);
    return *this;
  }
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  ~Promise() {
    if (cell_ != nullptr && !cell_->ready()) {
      cell_->complete(
          Error(Errc::Internal, "promise dropped: its owner went away without completing it"));
    }
  }

  [[nodiscard]] Future<T> future() const { return Future<T>(checked()); }

  /// Completes the future. Each returns false and changes nothing if the promise is already
  /// complete.
  bool set_value(T value) { return checked()->complete(std::move(value)); }
  bool set_error(Error error) { return checked()->complete(std::move(error)); }
  bool cancel() { return set_error(Error(Errc::Cancelled, "cancelled before it had a value")); }

 private:
  [[nodiscard]] const std::shared_ptr<detail::FutureCell<T>>& checked() const {
    SC_CHECK(cell_ != nullptr, "a promise was used after it was moved away");
    return cell_;
  }

  std::shared_ptr<detail::FutureCell<T>> cell_;
};

}  // namespace stagecraft
