/// TemporaryCredentials holds credentials that end with their user: those of a cluster that is made
/// for one run, or of one member that got its own over ssh.
///
/// They are made in a private folder under $XDG_RUNTIME_DIR, which is in memory, otherwise $TMPDIR,
/// otherwise /tmp, and removed with the object. A process that is killed leaves the folder, 0700.
/// Its certificates end after a day, and nobody can make others, because the authority's key is
/// only in the process. A process that runs longer than a day and starts another member must renew
/// first (issue()).
/// Thread: made and destroyed by one; dir() by any.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "stagecraft/actors/security/cluster_credentials.h"
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

  /// Returns the cluster's folder, like that of make_credentials, with members in dir() + "/driver"
  /// and so on; or the member's own folder.
  [[nodiscard]] const std::string& dir() const { return dir_; }

  /// Makes or renews the credentials of a member of the cluster. Errors: those of issue_member.
  void issue(const std::string& member, std::chrono::seconds valid_for) const;

  /// Removes the folder, for a process that ends without destroying the object. Any thread may call
  /// it.
  void remove() const;

 private:
  TemporaryCredentials() = default;

  std::optional<MemberIssuer> issuer_;  ///< none for the credentials of one member
  std::string dir_;
  HomeProcess home_;  ///< a child of fork() leaves it to its parent
  mutable std::mutex removing_;
};

/// Returns the contents of a member's folder, as one text that holds its own length, to send to a
/// worker on another host over a channel that only the worker reads.
/// Errors: those of load_credentials.
[[nodiscard]] std::string text_of_member(const std::string& dir);

}  // namespace stagecraft
