/// FutureOrigin is the place of a future's value if the value does not come by itself: an actor's
/// result, which stays with its owner until somebody wants it.
///
/// All handles of a future share it. It is destroyed with the last one, and releases the value.
#pragma once

#include <functional>

namespace stagecraft {

class FutureOrigin {
 public:
  FutureOrigin(const FutureOrigin&) = delete;
  FutureOrigin(FutureOrigin&&) = delete;
  FutureOrigin& operator=(const FutureOrigin&) = delete;
  FutureOrigin& operator=(FutureOrigin&&) = delete;
  virtual ~FutureOrigin() = default;

  /// Tells that somebody reads the future, each time. Must not block.
  virtual void wanted() = 0;
  /// Asks not to compute the value, if that has not begun.
  virtual void cancel() = 0;
  /// Runs a continuation on a thread for all of them, one after the other.
  virtual void later(std::function<void()> work) = 0;

 protected:
  FutureOrigin() = default;
};

}  // namespace stagecraft
