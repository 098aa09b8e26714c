/// ChildProcess: a program started by this one, which ends when this one does.
///
/// The child gets a lifeline: a pipe of which this process alone holds the other end, so that it
/// closes however this process ends. That is no death signal, which would follow the thread that
/// started the child.
/// CD-1: the child has standard output and error of this process, an empty standard input, its
///       lifeline, and no other descriptor; it is in a process group of its own, so that Ctrl-C at
///       a terminal is this process's to answer.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/base/home_process.h"

namespace stagecraft {

/// The number of the lifeline's descriptor in the child.
inline constexpr int kLifeline = 3;

class ChildProcess {
 public:
  /// `on_end` is called once, on a thread of its own, when the child has ended.
  /// Errors: UsageFile when `program` cannot be run; DeviceOutOfMemory when the system has no
  ///         process, descriptor or thread left for it.
  ChildProcess(const std::string& program,
               const std::vector<std::string>& arguments,
               std::function<void()> on_end);
  /// Kills it, if it has not ended, and waits until it is gone. In a child of fork(): does nothing.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }

  /// "was killed by signal 9 (Killed)", "ended with exit status 1"; nothing while it runs. Waits
  /// for it to end for at most `patience`.
  [[nodiscard]] std::optional<std::string> end(std::chrono::milliseconds patience) const;

  void kill() const;

 private:
  struct Fate;

  const HomeProcess home_;
  pid_t id_ = -1;
  int lifeline_ = -1;  ///< our end
  std::shared_ptr<Fate> fate_;
};

}  // namespace stagecraft
