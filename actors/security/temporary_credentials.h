/// TemporaryCredentials: a cluster of processes of one host, whose credentials go with it.
///
/// Made in a private folder under $XDG_RUNTIME_DIR, which is in memory, else $TMPDIR, else /tmp,
/// and removed with the object. A process that is killed leaves it behind, 0700; its certificates
/// end after a day. Who runs longer and starts another member renews first (issue_member).
/// Thread: made and destroyed by one; dir() by any.
#pragma once

#include <string>

#include "stagecraft/base/home_process.h"

namespace stagecraft {

class TemporaryCredentials {
 public:
  /// For a driver and this many workers.
  /// Errors: UsageArgument for a number out of range; UsageFile where none of the places can be
  /// written, with the reason of the last.
  explicit TemporaryCredentials(int members);
  ~TemporaryCredentials();
  TemporaryCredentials(const TemporaryCredentials&) = delete;
  TemporaryCredentials& operator=(const TemporaryCredentials&) = delete;

  /// The cluster's folder, as of make_credentials: members are in dir() + "/driver" and so on.
  [[nodiscard]] const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
  HomeProcess home_;  ///< a child of fork() leaves it to its parent
};

}  // namespace stagecraft
