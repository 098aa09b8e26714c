/// Interrupt: SIGINT, SIGTERM and SIGHUP as a question asked between two steps.
///
/// While one lives, the first of these signals says at once, on standard error, what will come of
/// it. The second, of whichever kind, ends the process as if nobody listened, so a step that does
/// not end can still be left.
/// I-1: one object at a time, made by the thread that runs the command.
/// I-2: a SIGHUP that is ignored, as under nohup, stays ignored.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace stagecraft::tools {

class Interrupt {
 public:
  /// What a run is at when the signal comes.
  enum class Phase { Steps, Saving, Ending };

  /// `saves`: whether something is to be saved. `begin`: put before what is said.
  Interrupt(bool saves, const std::string& begin);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void enter(Phase phase);

  /// The signal that came, or 0.
  [[nodiscard]] int received() const;

 private:
  std::array<std::string, 3> words_;  ///< by phase
  std::array<struct sigaction, 3> before_{};
};

/// "SIGTERM"
[[nodiscard]] std::string signal_name(int signal);

}  // namespace stagecraft::tools
