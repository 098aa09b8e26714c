/// Interrupt turns SIGINT, SIGTERM and SIGHUP into a question that a run asks between two steps.
///
/// While one lives, the first of these signals immediately prints on standard error what will
/// happen. A second SIGINT or SIGTERM ends the process as if there were no handler, so that a user
/// can leave a step that does not end.
/// I-1: one object at a time, made by the thread that runs the command.
/// I-2: a signal that is ignored, as SIGHUP under nohup, stays ignored.
/// I-3: a signal within kRepeats of the first one repeats the first: `timeout` sends its signal to
///      the process and to its group, and a terminal that closes sends SIGHUP twice. For that
///      reason no second SIGHUP ever counts.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <string>

namespace stagecraft::tools {

class Interrupt {
 public:
  /// Phase is the work of a run when the signal comes.
  enum class Phase { Steps, Saving, Ending };

  static constexpr std::chrono::nanoseconds kRepeats = std::chrono::seconds(1);

  /// Clock is called by the handler of a signal, so it calls nothing that POSIX does not allow
  /// there.
  using Clock = std::chrono::nanoseconds (*)();
  [[nodiscard]] static std::chrono::nanoseconds monotonic();

  /// `saves`: something will be saved. `in_line`: standard error may be in the middle of a line.
  /// The clock never runs backwards.
  Interrupt(bool saves, bool in_line, Clock clock = &monotonic);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void enter(Phase phase);

  /// Returns the first signal, or 0.
  [[nodiscard]] int received() const;

 private:
  const bool saves_;
  std::array<struct sigaction, 3> before_{};
};

/// Returns "SIGTERM".
[[nodiscard]] std::string signal_name(int signal);

}  // namespace stagecraft::tools
