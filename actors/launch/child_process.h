/// ChildProcess: a program started by this one, which ends when this one does.
///
/// The child gets a lifeline, its standard input, of which this process alone holds the other end,
/// so that it closes however this process ends. That is no death signal, which would follow the
/// thread that started the child; and ssh carries it to a child on another host.
/// CD-1: the child has its lifeline, standard output and error of this process, or pipes whose
///       lines are handed to whoever asked for them, and no other descriptor; it is in a process
///       group of its own, so that Ctrl-C at a terminal is this process's to answer.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/base/home_process.h"

namespace stagecraft {

/// The number of the lifeline's descriptor in the child.
inline constexpr int kLifeline = 0;

struct ChildProgram {
  std::string path;  ///< without a slash: looked for in PATH
  std::vector<std::string> arguments;
  std::string input;  ///< what it reads first from its lifeline; at most some ten KiB
  /// Told every line that it writes, on a thread of its own; empty: it writes where we do.
  std::function<void(std::string_view line)> on_line;
};

class ChildProcess {
 public:
  /// `on_end` is called once, on a thread of its own, when the child has ended.
  /// Errors: UsageFile when the program cannot be run; DeviceOutOfMemory when the system has no
  ///         process, descriptor or thread left for it.
  ChildProcess(const ChildProgram& program, std::function<void()> on_end);
  /// Kills it, if it has not ended, and waits until it is gone. In a child of fork(): does nothing.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }

  /// "was killed by signal 9 (Killed)", "ended with exit status 1"; nothing while it runs. Waits
  /// for it to end for at most `patience`.
  [[nodiscard]] std::optional<std::string> end(std::chrono::milliseconds patience) const;

  void kill() const;

  /// More for it to read from its lifeline: a few KiB. Without effect where it has ended.
  void say(std::string_view text) const;

 private:
  struct Fate;
  static void wait_for(pid_t id,
                       const std::shared_ptr<Fate>& fate,
                       const std::function<void()>& on_end);

  const HomeProcess home_;
  pid_t id_ = -1;
  int lifeline_ = -1;  ///< our end
  std::shared_ptr<Fate> fate_;
};

}  // namespace stagecraft
