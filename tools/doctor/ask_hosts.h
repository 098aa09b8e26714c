/// The doctor's round: all hosts of a cluster are asked at once, for what they are, what their
/// clocks say, and whether each reaches all others and this machine.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/hosts.h"
#include "stagecraft/tools/doctor/exam.h"

namespace stagecraft::tools {

struct Round {
  std::vector<Host> hosts;
  std::vector<std::string> ssh;  ///< as ssh_worker has it
  std::string interface;         ///< where workers are to reach this machine, as of `launch`
};

/// This machine first, then the hosts in their order. One that does not answer is told by its
/// `silence`: no error, and no wait beyond limits.h.
/// Errors: those of ChildProcess.
[[nodiscard]] std::vector<HostExam> ask_hosts(const Round& round);

}  // namespace stagecraft::tools
