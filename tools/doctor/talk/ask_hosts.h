/// ask_hosts is the doctor's round: it asks all hosts of a cluster at once for their facts and
/// their clocks, and whether each reaches all others and this machine.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/launch/network/hosts.h"
#include "stagecraft/tools/doctor/talk/exam.h"

namespace stagecraft::tools {

struct Round {
  std::vector<Host> hosts;
  std::vector<std::string> ssh;  ///< as in ssh_worker
  /// the interface of this machine that workers reach, as in `launch`
  std::string interface;
};

/// Returns this machine first, then the hosts in their order. A host that does not answer has its
/// reason in `silence`: that is no error, and the wait is bounded by limits.h.
/// Errors: those of ChildProcess.
[[nodiscard]] std::vector<HostExam> ask_hosts(const Round& round);

}  // namespace stagecraft::tools
