/// Interrupt: SIGINT, SIGTERM and SIGHUP as a question asked between two steps.
///
/// While one lives, the first of these signals says at once, on standard error, what will come of
/// it. The second, SIGINT or SIGTERM, ends the process as if nobody listened, so a step that does
/// not end can still be left.
/// I-1: one object at a time, made by the thread that runs the command.
/// I-2: a signal that is ignored, as SIGHUP under nohup, stays ignored.
/// I-3: what comes within kRepeats of the first is the first once more: `timeout` sends its signal
///      to the process and to its group, and a terminal that closes sends SIGHUP twice. For the
///      latter no second SIGHUP ever counts.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <string>

namespace stagecraft::tools {

class Interrupt {
 public:
  /// What a run is at when the signal comes.
  enum class Phase { Steps, Saving, Ending };

  static constexpr std::chrono::nanoseconds kRepeats = std::chrono::seconds(1);

  /// Asked by the handler of a signal, so it calls nothing that POSIX does not allow there.
  using Clock = std::chrono::nanoseconds (*)();
  [[nodiscard]] static std::chrono::nanoseconds monotonic();

  /// `saves`: whether something is to be saved. `in_line`: whether standard error may be in the
  /// middle of a line. The clock never runs backwards.
  Interrupt(bool saves, bool in_line, Clock clock = &monotonic);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void enter(Phase phase);

  /// The signal that came first, or 0.
  [[nodiscard]] int received() const;

 private:
  const bool saves_;
  std::array<struct sigaction, 3> before_{};
};

/// "SIGTERM"
[[nodiscard]] std::string signal_name(int signal);

}  // namespace stagecraft::tools
