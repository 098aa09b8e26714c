/// Interrupt: Ctrl-C as a question asked between two steps.
///
/// While one lives, the first SIGINT sets a flag and the second kills the process as if nobody
/// listened, so a step that does not end can still be left. I-1: one object at a time, made by the
/// thread that runs the command.
#pragma once

#include <csignal>

namespace stagecraft::tools {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] bool requested() const;

 private:
  struct sigaction before_ {};
};

}  // namespace stagecraft::tools
