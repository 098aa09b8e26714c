/// TemporaryCredentials: credentials that go with their user: those of a cluster that is made for
/// one run, or of one member that got its own over ssh.
///
/// Made in a private folder under $XDG_RUNTIME_DIR, which is in memory, else $TMPDIR, else /tmp,
/// and removed with the object. A process that is killed leaves it behind, 0700; its certificates
/// end after a day, its authority after 30. A process that runs longer than a day and starts
/// another member must renew first (issue_member).
/// Thread: made and destroyed by one; dir() by any.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "stagecraft/base/process/home_process.h"

namespace stagecraft {

class TemporaryCredentials {
 public:
  /// Makes credentials for a driver and this many workers.
  /// Errors: UsageArgument for a number out of range; UsageFile if none of the places can be
  ///         written, with the reason of the last.
  explicit TemporaryCredentials(int members);
  /// Makes them in the folder `dir`, which must not exist yet; makes its parents. Errors: as above.
  TemporaryCredentials(int members, const std::string& dir);
  ~TemporaryCredentials();
  TemporaryCredentials(const TemporaryCredentials&) = delete;
  TemporaryCredentials& operator=(const TemporaryCredentials&) = delete;

  /// Reads the credentials of one member from a descriptor, in the form of text_of_member(), and no
  /// byte more.
  /// Errors: UsageFile for other input, and as above.
  [[nodiscard]] static std::unique_ptr<TemporaryCredentials> received(int descriptor);

  /// Returns the cluster's folder, as of make_credentials, with members in dir() + "/driver" and so
  /// on; or the member's own folder.
  [[nodiscard]] const std::string& dir() const { return dir_; }

  /// Removes the folder, for a process that ends without destroying the object. Any thread may call
  /// it.
  void remove() const;

 private:
  TemporaryCredentials() = default;

  std::string dir_;
  HomeProcess home_;  ///< a child of fork() leaves it to its parent
  mutable std::mutex removing_;
};

/// Returns the contents of a member's folder, as one text that holds its own length, to send to a
/// worker on another host over a channel that only the worker reads.
/// Errors: those of load_credentials.
[[nodiscard]] std::string text_of_member(const std::string& dir);

}  // namespace stagecraft
