/// TemporaryCredentials: credentials that go with who uses them: those of a cluster that is made
/// for one run, or of one member that was handed its own over ssh.
///
/// Made in a private folder under $XDG_RUNTIME_DIR, which is in memory, else $TMPDIR, else /tmp,
/// and removed with the object. A process that is killed leaves it behind, 0700; its certificates
/// end after a day, its authority after 30. Who runs longer than a day and starts another member
/// renews first (issue_member).
/// Thread: made and destroyed by one; dir() by any.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "stagecraft/base/home_process.h"

namespace stagecraft {

class TemporaryCredentials {
 public:
  /// For a driver and this many workers.
  /// Errors: UsageArgument for a number out of range; UsageFile where none of the places can be
  /// written, with the reason of the last.
  explicit TemporaryCredentials(int members);
  /// In the folder `dir`, which must not be there yet; those above it are made. Errors: as above.
  TemporaryCredentials(int members, const std::string& dir);
  ~TemporaryCredentials();
  TemporaryCredentials(const TemporaryCredentials&) = delete;
  TemporaryCredentials& operator=(const TemporaryCredentials&) = delete;

  /// Of one member, read from a descriptor as text_of_member() has it, and not a byte more.
  /// Errors: UsageFile for something else, and as above.
  [[nodiscard]] static std::unique_ptr<TemporaryCredentials> received(int descriptor);

  /// The cluster's folder, as of make_credentials: members are in dir() + "/driver" and so on; or
  /// the member's own.
  [[nodiscard]] const std::string& dir() const { return dir_; }

  /// Removes the folder, for a process that ends without destroying the object. Any thread may.
  void remove() const;

 private:
  TemporaryCredentials() = default;

  std::string dir_;
  HomeProcess home_;  ///< a child of fork() leaves it to its parent
  mutable std::mutex removing_;
};

/// What a member's folder has, as one text that says its own length: to be handed to a worker on
/// another host, over a channel that nobody else reads.
/// Errors: those of load_credentials.
[[nodiscard]] std::string text_of_member(const std::string& dir);

}  // namespace stagecraft
