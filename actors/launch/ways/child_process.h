/// ChildProcess is a program that this process started, and that ends when this process does.
///
/// The child's standard input is a lifeline: only this process holds its other end, so it closes in
/// every case in which this process ends. A death signal would follow the thread that started the
/// child; a lifeline does not, and ssh carries it to a child on another host.
/// CD-1: the child has its lifeline, and standard output and error of this process, or pipes whose
///       lines go to `on_line`. It has no other descriptor. It has its own process group, so Ctrl-C
///       at a terminal reaches only this process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/launch/ways/worker_child.h"
#include "stagecraft/base/process/home_process.h"

namespace stagecraft {

/// The descriptor of the lifeline in the child.
inline constexpr int kLifeline = 0;

struct ChildProgram {
  std::string path;  ///< without a slash: searched for in PATH
  std::vector<std::string> arguments;
  std::string input;  ///< what it first reads from its lifeline; at most some ten KiB
  /// A function that gets every line of the child's output, on a thread of its own. Empty: the
  /// child writes to our output.
  std::function<void(std::string_view line)> on_line;
};

class ChildProcess final : public WorkerChild {
 public:
  /// Starts the program. Calls `on_end` once, on a thread of its own, when the child has ended,
  /// with the text of end().
  /// Errors: UsageFile if the program cannot be run; DeviceOutOfMemory if the system has no
  /// process, descriptor or thread left for it.
  ChildProcess(const ChildProgram& program, std::function<void(const std::string& how)> on_end);
  /// Kills the child, unless it has ended, and waits for its end. In a child of fork(): does
  /// nothing.
  ~ChildProcess() override;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t id() const override { return id_; }

  /// Returns how the child ended: "was killed by signal 9 (Killed)", "ended with exit status 1";
  /// nothing while it runs.
  [[nodiscard]] std::optional<std::string> end() const;

  void kill() const override;

  /// Writes to the child's lifeline: a few KiB. Has no effect if the child has ended.
  void say(std::string_view text) const;

 private:
  struct Fate;
  static void wait_for(pid_t id,
                       const std::shared_ptr<Fate>& fate,
                       const std::function<void(const std::string&)>& on_end);

  const HomeProcess home_;
  pid_t id_ = -1;
  int lifeline_ = -1;  ///< our end
  std::shared_ptr<Fate> fate_;
};

}  // namespace stagecraft
