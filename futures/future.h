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
///      your own instead of working there, or use then().
/// F-5: a future may have an origin, the place of a value that comes only when it is wanted. Each
///      question about the future wants the value. The origin goes with the last handle.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/base/check.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/error.h"
#include "stagecraft/futures/origin.h"

namespace stagecraft {

using Deadline = Clock::Time;

/// Names a callback of a future; 0 names none.
using CallbackId = std::uint64_t;

namespace detail {

template <class T>
class FutureCell {
 public:
  /// Returns false and changes nothing if the cell is already complete (keeps F-1). A callback that
  /// throws breaks F-4 and ends the program here, not in a thread that cannot handle it.
  template <class Outcome>
  bool complete(Outcome&& outcome) noexcept {
    std::vector<Callback> callbacks;
    {
      const std::scoped_lock lock(mutex_);
      if (done()) {
        return false;
      }
      outcome_ = std::forward<Outcome>(outcome);
      callbacks.swap(callbacks_);
    }
    completed_.notify_all();
    for (const Callback& callback : callbacks) {
      callback.work();
    }
    return true;
  }

  CallbackId on_ready(std::function<void()> work) {
    {
      const std::scoped_lock lock(mutex_);
      if (!done()) {
        callbacks_.push_back({++last_id_, std::move(work)});
        return last_id_;
      }
    }
    work();
    return 0;
  }

  void forget(CallbackId id) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(callbacks_, [id](const Callback& callback) { return callback.id == id; });
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
    Clock::current()->wait(completed_, lock, [this] { return done(); });
    if (const Error* error = std::get_if<Error>(&outcome_)) {
      throw Error(*error);
    }
    return std::get<T>(outcome_);
  }

 private:
  struct Pending {};
  struct Callback {
    CallbackId id;
    std::function<void()> work;
  };

  [[nodiscard]] bool done() const { return !std::holds_alternative<Pending>(outcome_); }

  mutable std::mutex mutex_;
  mutable std::condition_variable completed_;
  std::variant<Pending, T, Error> outcome_;
  std::vector<Callback> callbacks_;
  CallbackId last_id_ = 0;
};

/// The type of a future's continuation; future.h has no future of void.
template <class Work, class T>
using ResultOf = std::conditional_t<std::is_void_v<std::invoke_result_t<Work&, T>>,
                                    std::monostate,
                                    std::invoke_result_t<Work&, T>>;

}  // namespace detail

template <class T>
class Promise;

/// Future is the reading end: a copyable handle. All copies see the same outcome. A
/// default-constructed future has no promise: assign to it or ask `valid()`, nothing else. For a
/// future without a value use T = std::monostate.
template <class T>
class Future {
 public:
  Future() = default;

  [[nodiscard]] bool valid() const { return cell_ != nullptr; }

  [[nodiscard]] bool ready() const { return wanted().ready(); }

  /// Returns true if the future is complete by the deadline, a time of `clock`.
  [[nodiscard]] bool wait_until(Deadline deadline, const Clock& clock = *Clock::current()) const {
    return wanted().wait_until(deadline, clock);
  }

  /// Returns the value; may be called any number of times. Waits without a deadline, so the runtime
  /// calls `wait_until` first.
  /// Errors: rethrows the Error that completed the future; Errc::Cancelled if it was cancelled.
  T get() const { return wanted().get(); }

  /// Registers a callback, which runs once as F-4 says. Returns its name, until it has run.
  CallbackId on_ready(std::function<void()> callback) const {
    return wanted().on_ready(std::move(callback));
  }
  /// Removes a callback that has not begun to run. For another name it changes nothing.
  void forget(CallbackId callback) const { cell().forget(callback); }

  /// Returns the future of `work(value)`. With an origin, `work` runs on a thread of the origin's,
  /// and may wait, but for no other continuation; without one it is a callback (F-4). If this
  /// future fails, `work` does not run and the returned one fails alike, as it does if `work`
  /// throws. Where `work` returns nothing, the value is a std::monostate.
  template <class Work>
  auto then(Work work) const -> Future<detail::ResultOf<Work, T>>;

  /// Asks the origin not to compute the value. If that comes in time, the future completes with
  /// Errc::Cancelled. Changes nothing for a future that is complete or has no origin.
  void cancel() const {
    if (origin_ != nullptr) {
      origin_->cancel();
    }
  }

  /// Returns the place of the value; null if it has none of its own.
  [[nodiscard]] const std::shared_ptr<FutureOrigin>& origin() const { return origin_; }

 private:
  friend class Promise<T>;

  Future(std::shared_ptr<detail::FutureCell<T>> cell, std::shared_ptr<FutureOrigin> origin)
      : cell_(std::move(cell)), origin_(std::move(origin)) {}

  [[nodiscard]] detail::FutureCell<T>& cell() const {
    SC_CHECK(cell_ != nullptr, "a future without a promise was used");
    return *cell_;
  }
  [[nodiscard]] detail::FutureCell<T>& wanted() const {
    if (origin_ != nullptr) {
      origin_->wanted();
    }
    return cell();
  }

  std::shared_ptr<detail::FutureCell<T>> cell_;
  std::shared_ptr<FutureOrigin> origin_;
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

  /// Returns the reading end. `origin`: of a value that comes when it is wanted.
  [[nodiscard]] Future<T> future(std::shared_ptr<FutureOrigin> origin = nullptr) const {
    return Future<T>(checked(), std::move(origin));
  }

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

template <class T>
template <class Work>
auto Future<T>::then(Work work) const -> Future<detail::ResultOf<Work, T>> {
  using Result = detail::ResultOf<Work, T>;
  const auto promise = std::make_shared<Promise<Result>>();
  const auto kept = std::make_shared<Work>(std::move(work));
  const auto run = [cell = cell_, promise, kept] {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Work&, T>>) {
        (*kept)(cell->get());
        promise->set_value({});
      } else {
        promise->set_value((*kept)(cell->get()));
      }
    } catch (const Error& error) {
      promise->set_error(error);
    } catch (const std::exception& error) {
      promise->set_error(
          Error(Errc::WorkerFailed, std::string("a continuation threw: ") + error.what()));
    } catch (...) {
      promise->set_error(Error(Errc::WorkerFailed, "a continuation threw no std::exception"));
    }
  };
  on_ready([origin = origin_, run] {
    if (origin != nullptr) {
      origin->later(run);
    } else {
      run();
    }
  });
  return promise->future();
}

}  // namespace stagecraft
