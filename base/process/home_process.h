/// HomeProcess remembers the process that made an object which owns threads. A child of fork() has
/// a copy of the object but none of its threads, so a request to them would never be answered.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <string>

#include "stagecraft/base/error.h"

namespace stagecraft {

class HomeProcess {
 public:
  [[nodiscard]] bool is_here() const { return process_ == getpid(); }

  /// Errors: UsageArgument in a child of fork(); `what` names the object.
  void require_here(const char* what) const {
    if (!is_here()) {
      throw Error(Errc::UsageArgument,
                  std::string(what) + " was made in process " + std::to_string(process_) +
                      " and is used in its child " + std::to_string(getpid()) +
                      ", which has no worker threads after fork(): make a trainer in the child, "
                      "or fork before the first one is made");
    }
  }

 private:
  pid_t process_ = getpid();
};

}  // namespace stagecraft
