/// WorkerChild is a process that a fleet has started for one of its places, or the one through
/// which it was started on another host.
#pragma once

#include <sys/types.h>

namespace stagecraft {

class WorkerChild {
 public:
  WorkerChild(const WorkerChild&) = delete;
  WorkerChild(WorkerChild&&) = delete;
  WorkerChild& operator=(const WorkerChild&) = delete;
  WorkerChild& operator=(WorkerChild&&) = delete;
  /// Kills the process, unless it has ended, and waits for its end.
  virtual ~WorkerChild() = default;

  [[nodiscard]] virtual pid_t id() const = 0;
  virtual void kill() const = 0;

 protected:
  WorkerChild() = default;
};

}  // namespace stagecraft
